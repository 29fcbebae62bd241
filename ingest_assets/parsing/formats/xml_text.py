"""Any other XML, XHTML apart: the text of its elements, a line each."""

import xml.parsers.expat

from ingest_assets.parsing.inflate import refuse_entities
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason

_DEEPEST = 500


def read(source: Source, text: Text) -> None:
    """Write the text between tags.

    Raises:
        Refused: `malformed`, also for entities of the document's own; `too_deep`.
    """
    text.markdown = False
    content = source.text.encode("utf-8", "replace")
    refuse_entities(content)
    parser = xml.parsers.expat.ParserCreate("utf-8")  # what the declaration says has been heard
    parser.buffer_text = True
    depth = 0
    gathered: list[str] = []

    def flush() -> None:
        words = " ".join("".join(gathered).split())
        gathered.clear()
        if words:
            text.add(words + "\n")

    def start(_name: str, _attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise Refused(Reason.TOO_DEEP, f"Its elements are nested more than {_DEEPEST} deep.")
        flush()

    def end(_name: str) -> None:
        nonlocal depth
        depth -= 1
        flush()

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = gathered.append
    try:
        parser.Parse(content.lstrip(), True)  # noqa: FBT003 - its signature
    except xml.parsers.expat.ExpatError as error:
        raise Refused(Reason.MALFORMED, f"It is not well-formed XML: {error}.") from error
