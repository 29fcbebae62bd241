"""What came of extracting one document, as it is published."""

import msgspec

from ingest_assets.engine.entry_finding import Bill
from ingest_assets.parsing import ParsedDocument
from resources.artifact_store.artifact import Artifact
from resources.document_state.model import DocStatus
from resources.document_state.reasons import Reason


class Extraction(msgspec.Struct):
    """What came of one document: an artifact, the news that nothing changed, or a reason.

    Attributes:
        content_version, size: of the content that was read; "" if it could not be.
        is_whole: nothing of it is left to be extracted. A conversation is published call by call.
        last_turn: the last turn of a conversation that is extracted.
        bill: what was paid in this run; `booked` of it is in the record already.
    """

    doc: DocStatus
    parts: dict[str, str]
    content_version: str = ""
    size: int = 0
    artifact: Artifact | None = None
    artifact_key: str = ""
    unchanged: bool = False
    is_whole: bool = True
    last_turn: int | None = None
    reason: Reason | None = None
    error: str = ""
    n_pages: int = 0
    n_empty_pages: int = 0
    seconds: float = 0.0
    bill: Bill = Bill()
    booked: Bill = Bill()

    @property
    def as_read(self) -> DocStatus:
        """The record, with what the source said of the content that was read, whatever came of it."""
        if not self.content_version:
            return self.doc
        return msgspec.structs.replace(self.doc, content_version=self.content_version, size=self.size)

    def note_parsed(self, parsed: ParsedDocument) -> None:
        """Note of the parsed document what its artifact does not say."""
        self.n_pages, self.n_empty_pages = parsed.pages or 0, parsed.empty_pages


def n_corrections(doc: DocStatus) -> int:
    """How many corrections people made to what was extracted last."""
    return 0 if doc.corrections is None else doc.corrections.n
