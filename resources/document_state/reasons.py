"""The closed list of reasons a document can have for not being done, and what each one means for a person.

A reason is data: retry policy, pages and command line read it from here and never from an error's text.
"""

from enum import StrEnum
from typing import NamedTuple


class Remedy(StrEnum):
    """Whether trying again can help."""

    MAY_HEAL = "may_heal"  # the same document can succeed later without a change
    NEEDS_PERSON = "needs_person"  # somebody has to do something: a password, a permission, a key
    FINAL = "final"  # this content will never succeed; only other content can


class _Meaning(NamedTuple):
    remedy: Remedy
    what_to_do: str


class Reason(StrEnum):
    """Why a phase of a document is FAILED or SKIPPED, or is held back while it is PENDING."""

    EMPTY_FILE = "empty_file"
    NO_TEXT = "no_text"
    IMAGE_ONLY = "image_only"
    PASSWORD_REQUIRED = "password_required"  # noqa: S105 - a reason, not a password
    MALFORMED = "malformed"
    UNSUPPORTED_TYPE = "unsupported_type"
    ARCHIVE = "archive"
    TOO_LARGE = "too_large"
    TOO_MANY_PAGES = "too_many_pages"
    TOO_DEEP = "too_deep"
    INFLATES_TOO_MUCH = "inflates_too_much"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    PARSER_CRASHED = "parser_crashed"
    CHANGED_WHILE_READING = "changed_while_reading"
    VANISHED = "vanished"
    ACCESS_DENIED = "access_denied"
    SOURCE_UNAVAILABLE = "source_unavailable"
    STORE_UNAVAILABLE = "store_unavailable"
    STORE_MISCONFIGURED = "store_misconfigured"
    STORE_MISMATCH = "store_mismatch"
    STORE_DAMAGED = "store_damaged"
    NOT_REMOVED = "not_removed"
    EMBEDDER_FAILED = "embedder_failed"
    MODEL_ACCESS = "model_access"
    MODEL_REJECTED = "model_rejected"
    MODEL_THROTTLED = "model_throttled"
    MODEL_UNAVAILABLE = "model_unavailable"
    MODEL_MALFORMED = "model_malformed"
    MODEL_REFUSED = "model_refused"
    CONTEXT_TOO_LONG = "context_too_long"
    SPEND_CEILING = "spend_ceiling"
    UNKNOWN_DOCUMENT = "unknown_document"
    RECORD_DAMAGED = "record_damaged"
    INTERNAL_ERROR = "internal_error"

    @property
    def remedy(self) -> Remedy:
        """Whether trying again can help."""
        return _MEANINGS[self].remedy

    @property
    def what_to_do(self) -> str:
        """One sentence for the person who reads it."""
        return _MEANINGS[self].what_to_do


_MEANINGS: dict[Reason, _Meaning] = {
    Reason.EMPTY_FILE: _Meaning(Remedy.FINAL, "The file has no bytes. Fill or remove it."),
    Reason.NO_TEXT: _Meaning(Remedy.FINAL, "No text was found. Check the file in a viewer."),
    Reason.IMAGE_ONLY: _Meaning(Remedy.FINAL, "Its pages are pictures. Run OCR on it and put the result in."),
    Reason.PASSWORD_REQUIRED: _Meaning(Remedy.NEEDS_PERSON, "It is encrypted. Put a copy without password in."),
    Reason.MALFORMED: _Meaning(Remedy.FINAL, "The file is damaged. Replace it by a whole copy."),
    Reason.UNSUPPORTED_TYPE: _Meaning(Remedy.FINAL, "No parser reads this type. Convert it, or leave it out."),
    Reason.ARCHIVE: _Meaning(
        Remedy.FINAL, "It has no text of its own. Its members are documents, unless its source says `members = false`."
    ),
    Reason.TOO_LARGE: _Meaning(Remedy.FINAL, "It is over a size limit. Split it, or raise the limit in ingest.toml."),
    Reason.TOO_MANY_PAGES: _Meaning(Remedy.FINAL, "It has too many pages. Split it, or raise `limits.pages`."),
    Reason.TOO_DEEP: _Meaning(Remedy.FINAL, "It is nested too deeply. Flatten it, or raise `limits.nesting`."),
    Reason.INFLATES_TOO_MUCH: _Meaning(
        Remedy.FINAL,
        "Unpacked it is over `limits.inflated_bytes`. Likely a bomb; raise the limit if it is not.",
    ),
    Reason.TIMED_OUT: _Meaning(Remedy.FINAL, "Parsing took longer than `limits.wall_seconds`."),
    Reason.OUT_OF_MEMORY: _Meaning(Remedy.FINAL, "Parsing needed more than `limits.memory_bytes`."),
    Reason.PARSER_CRASHED: _Meaning(Remedy.FINAL, "The parser process died on it. Replace the file, or report it."),
    Reason.CHANGED_WHILE_READING: _Meaning(Remedy.MAY_HEAL, "It was being written. It is tried again by itself."),
    Reason.VANISHED: _Meaning(Remedy.MAY_HEAL, "It was listed but is gone. The next listing settles it."),
    Reason.ACCESS_DENIED: _Meaning(Remedy.NEEDS_PERSON, "The process may not read it. Grant access, then retry."),
    Reason.SOURCE_UNAVAILABLE: _Meaning(Remedy.MAY_HEAL, "The source did not answer. It is tried again by itself."),
    Reason.STORE_UNAVAILABLE: _Meaning(Remedy.MAY_HEAL, "The store did not answer. It is tried again by itself."),
    Reason.STORE_MISCONFIGURED: _Meaning(
        Remedy.NEEDS_PERSON,
        "The store refuses us. Correct what the error names (address, password, options), then "
        "`ingest run --failed --store S`.",
    ),
    Reason.STORE_MISMATCH: _Meaning(
        Remedy.NEEDS_PERSON,
        "The store holds vectors of another embedder. Set that one again, or rebuild: `ingest run --stale --store S`.",
    ),
    Reason.STORE_DAMAGED: _Meaning(
        Remedy.NEEDS_PERSON,
        "The store's data cannot be read by this version. Restore, upgrade, or drop and rebuild it.",
    ),
    Reason.NOT_REMOVED: _Meaning(
        Remedy.MAY_HEAL, "The store still held it after its removal. It is tried again by itself, without end."
    ),
    Reason.EMBEDDER_FAILED: _Meaning(
        Remedy.MAY_HEAL, "The store's embedder gave no usable vectors. It is tried again by itself."
    ),
    Reason.MODEL_ACCESS: _Meaning(
        Remedy.NEEDS_PERSON, "No key, a wrong one, no access to the model, or no such model. Set it right, then retry."
    ),
    Reason.MODEL_REJECTED: _Meaning(
        Remedy.NEEDS_PERSON, "The model does not take such calls; often `llm.max_tokens` is over its limit."
    ),
    Reason.MODEL_THROTTLED: _Meaning(
        Remedy.MAY_HEAL, "The model's provider takes no more for now. It is tried again by itself."
    ),
    Reason.MODEL_UNAVAILABLE: _Meaning(Remedy.MAY_HEAL, "The model did not answer. It is tried again by itself."),
    Reason.MODEL_MALFORMED: _Meaning(
        Remedy.NEEDS_PERSON,
        "The model's answers could not be read. Raise `llm.max_tokens` if they were cut off, or take another model.",
    ),
    Reason.MODEL_REFUSED: _Meaning(
        Remedy.FINAL, "The model or its content filter refused it. Leave it out, or take another model."
    ),
    Reason.CONTEXT_TOO_LONG: _Meaning(
        Remedy.NEEDS_PERSON, "It is more than the model takes at once. Lower `llm.input_tokens` or `chunking.size`."
    ),
    Reason.SPEND_CEILING: _Meaning(
        Remedy.MAY_HEAL, "A ceiling of `[spend]` holds it back, unpaid. Raise it, or wait: it is tried again by itself."
    ),
    Reason.UNKNOWN_DOCUMENT: _Meaning(
        Remedy.NEEDS_PERSON, "No source ever listed it. Remove the partition, or put the file in."
    ),
    Reason.RECORD_DAMAGED: _Meaning(
        Remedy.NEEDS_PERSON, "Its record is not what was written. `ingest verify --repair` makes it again."
    ),
    Reason.INTERNAL_ERROR: _Meaning(Remedy.MAY_HEAL, "A fault of this program. Please report it with the error."),
}
