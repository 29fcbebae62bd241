"""Which extractors need nothing but their name.

| name | what it is |
|---|---|
| `local` | the default: statements, key phrases and entities, offline and deterministic |
| `none` | chunks only |
| `module:Class` | a class of your own |
"""

from resources.extractor.extractor import Extractor
from resources.extractor.local_extractor import LocalExtractor
from resources.extractor.none_extractor import NoneExtractor
from resources.own_class import own_class

_KNOWN: dict[str, type[Extractor]] = {"local": LocalExtractor, "none": NoneExtractor}


class UnknownExtractorError(ValueError):
    """No extractor has the name."""


def open_extractor(name: str = "local") -> Extractor:
    """Make the extractor called `name`.

    Raises:
        UnknownExtractorError: there is none; the message lists those there are.
    """
    if ":" in name:
        try:
            return own_class(name, Extractor)()  # type: ignore[type-abstract]
        except LookupError as error:
            raise UnknownExtractorError(str(error)) from error
    if name not in _KNOWN:
        raise UnknownExtractorError(f"Unknown extractor '{name}'. Known: {', '.join(sorted(_KNOWN))}.")
    return _KNOWN[name]()
