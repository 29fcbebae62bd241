"""A user's own class, named in the configuration as `module:Class`."""

from pkgutil import resolve_name
from typing import TypeVar

T = TypeVar("T")


def own_class(reference: str, port: type[T]) -> type[T]:
    """The class `module:Class` names, which must be one of `port`.

    Raises:
        LookupError: the module or the class is not there, or the class is not one of `port`.
    """
    try:
        found = resolve_name(reference)
    except (ImportError, AttributeError, ValueError) as error:
        raise LookupError(f"'{reference}' cannot be loaded: {error}.") from error
    if not (isinstance(found, type) and issubclass(found, port)):
        raise LookupError(f"'{reference}' is no {port.__name__}.")  # noqa: TRY004 - it is the name that is wrong
    return found
