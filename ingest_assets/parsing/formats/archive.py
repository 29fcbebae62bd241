"""Archives: no text of their own. What lies in them is listed by their source, as documents."""

from ingest_assets.parsing.text import Source, Text
from ingest_assets.parsing.unpack import examine


def read(source: Source, text: Text) -> None:  # noqa: ARG001 - the form of every format
    """Open it whole, so that one that cannot be says why.

    Raises:
        Refused: always: `archive`, or what is wrong with it.
    """
    examine(source.filename, source.content, source.limits)
