"""What a person is told when Dagster's own databases cannot be used: a full disk, a file that is gone."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

_KEPT_AS_TEXT = re.compile(r"sqlalchemy\.exc\.\w+: (?:\([\w.]+\) )?(?P<said>.+)")


class DagsterDatabaseError(Exception):
    """Dagster could not read or write what it keeps. Known where Dagster is not loaded."""


@contextmanager
def told_of_its_databases() -> Iterator[None]:
    """Tell of Dagster's own databases in one sentence, without the statement and its values.

    Raises:
        DagsterDatabaseError: one of them could not be used.
    """
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except SQLAlchemyError as error:
        raise _unusable(getattr(error, "orig", None) or error) from error


def fault_of_its_databases(message: str) -> DagsterDatabaseError | None:
    """The same of a fault that Dagster kept as text, since it came up within a run; None if it is another fault."""
    found = _KEPT_AS_TEXT.match(message)
    return _unusable(found["said"]) if found else None


def _unusable(said: object) -> DagsterDatabaseError:
    return DagsterDatabaseError(
        f"Dagster's databases could not be used: {said}. Nothing was lost: documents are in the state store. "
        f"Look at {os.environ.get('DAGSTER_HOME')} and its disk, then run it again."
    )
