"""What mending records has done."""

import msgspec


class Mended(msgspec.Struct):
    """What was done to records.

    Attributes:
        document_ids: documents whose record was written.
        problems: why a document could not be mended, by id; "" for what concerns several.
    """

    document_ids: list[str] = msgspec.field(default_factory=list)
    problems: dict[str, str] = msgspec.field(default_factory=dict)
