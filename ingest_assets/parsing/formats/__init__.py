"""One module per format, and the table that says which reads what.

A format module has `read(source, text)`: it takes the bytes of `source`, writes into `text`, and raises
`Refused` when there is nothing to read. Modules are imported when first needed, so a run of text files
never loads a PDF engine.
"""

from typing import NamedTuple

TEXT = "text/plain"
MARKDOWN = "text/markdown"
RST = "text/x-rst"
HTML = "text/html"
CSV = "text/csv"
TSV = "text/tab-separated-values"
JSON = "application/json"
JSONL = "application/x-ndjson"
CONVERSATION = "application/vnd.ingest.conversation+json"
XML = "application/xml"
PDF = "application/pdf"
EPUB = "application/epub+zip"
EML = "message/rfc822"
RTF = "application/rtf"
_OOXML = "application/vnd.openxmlformats-officedocument."
DOCX = _OOXML + "wordprocessingml.document"
PPTX = _OOXML + "presentationml.presentation"
XLSX = _OOXML + "spreadsheetml.sheet"
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ARCHIVE = "application/x-archive"
XLS = "application/vnd.ms-excel"


class Format(NamedTuple):
    """Who reads a media type: a module of this folder, and the libraries it uses, the usual one first."""

    module: str
    libraries: tuple[str, ...] = ()


FORMATS = {
    TEXT: Format("plain"),
    MARKDOWN: Format("markdown"),
    RST: Format("rst"),
    HTML: Format("html", ("selectolax",)),
    PDF: Format("pdf", ("pypdfium2", "pdf-oxide")),
    DOCX: Format("docx", ("python-docx",)),
    PPTX: Format("pptx", ("python-pptx",)),
    XLSX: Format("xlsx", ("python-calamine",)),
    XLS: Format("xls", ("python-calamine",)),
    ODT: Format("odt"),
    ODS: Format("ods", ("python-calamine",)),
    CSV: Format("csv_table"),
    TSV: Format("csv_table"),
    EML: Format("mail"),
    EPUB: Format("epub", ("selectolax",)),
    JSON: Format("json_document"),
    JSONL: Format("json_lines"),
    CONVERSATION: Format("json_document"),
    XML: Format("xml_text"),
    RTF: Format("rtf"),
    ARCHIVE: Format("archive"),
}
