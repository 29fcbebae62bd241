"""The label of a document's record: what documents are counted and filtered by, without reading them.

A corpus of a million documents has a few dozen different labels, so counting by label answers every question of
`ingest status`, and choosing labels chooses documents.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from resources.document_state.model import DocStatus, LinkState, Phase, Presence, Status
from resources.document_state.reasons import Reason


class DocumentLabel(msgspec.Struct, frozen=True):
    """The facets of a document. `extraction_config`, and the last of each link, are what `config_hash` gives."""

    source: str
    presence: Presence
    extraction: Status
    extraction_reason: Reason | None
    extraction_config: str
    build: Status
    build_reason: Reason | None
    claimed: bool
    links: tuple[tuple[str, LinkState, str], ...]

    def status(self, phase: Phase) -> Status:
        """The status of one phase."""
        return self.extraction if phase is Phase.EXTRACTION else self.build

    def reason(self, phase: Phase) -> Reason | None:
        """The reason of one phase."""
        return self.extraction_reason if phase is Phase.EXTRACTION else self.build_reason


_Parts = tuple[tuple[str, str], ...]  # of a fingerprint, but for the content: names and values

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(
    tuple[
        str, Presence, Status, Reason | None, str, Status, Reason | None, bool, tuple[tuple[str, LinkState, str], ...]
    ]
)


def label_of(doc: DocStatus) -> str:
    """The label a document's record carries."""
    extraction, build, held = doc.extraction, doc.build, doc.links
    links = [(slug, held[slug].state, _configured(held[slug].parts)) for slug in doc.due_in if slug in held]
    return _label(
        doc.source,
        doc.presence,
        extraction.status,
        extraction.reason,
        _configured(extraction.parts),
        build.status,
        build.reason,
        doc.claim is not None,
        tuple(links),
    )


def read_label(label: str) -> DocumentLabel:
    """The facets a label stands for."""
    return DocumentLabel(*_decoder.decode(label))


def readable_label(label: str) -> DocumentLabel | None:
    """The facets a label stands for; None if it is none of ours."""
    try:
        return read_label(label)
    except (msgspec.MsgspecError, RecursionError):
        return None


def config_hash(parts: Mapping[str, str]) -> str:
    """One short text for the parts that come from configuration, which is all but the content; "" for no parts."""
    return _hashed(_configured(parts))


def differing_parts(recorded: str, wanted: str) -> list[str]:
    """The names of the parts in which two texts of `config_hash` differ, ascending."""
    old, new = (dict(part.partition("=")[::2] for part in text.split(",") if part) for text in (recorded, wanted))
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


# A corpus has a few configurations and labels, and its label is asked for at each document that is written.
@lru_cache(maxsize=1024)
def _label(
    source: str,
    presence: Presence,
    extraction: Status,
    extraction_reason: Reason | None,
    extraction_parts: _Parts,
    build: Status,
    build_reason: Reason | None,
    claimed: bool,
    links: tuple[tuple[str, LinkState, _Parts], ...],
) -> str:
    facets = (
        source,
        presence,
        extraction,
        extraction_reason,
        _hashed(extraction_parts),
        build,
        build_reason,
        claimed,
        [(slug, state, _hashed(parts)) for slug, state, parts in sorted(links)],
    )
    return _encoder.encode(facets).decode()


@lru_cache(maxsize=1024)
def _hashed(parts: _Parts) -> str:
    return ",".join(f"{name}={_short(value)}" for name, value in sorted(parts))


def _configured(parts: Mapping[str, str]) -> _Parts:
    return tuple([item for item in parts.items() if item[0] != "content"]) if parts else ()


def _short(value: str) -> str:
    """A hash, not a prefix: what differs in a configuration (a chunk's size) may stand at the end of its value."""
    return hashlib.sha256(value.encode()).hexdigest()[:8]
