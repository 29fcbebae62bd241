"""Records as they should have been: made again from what else is known, or brought in line with it.

Unlike a transition, none of these follows from what the record was: that cannot be trusted.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from resources.document_state.artifact_summary import ArtifactSummary
from resources.document_state.links import is_current
from resources.document_state.model import Corrections, DocStatus, DocumentStoreLink, LinkState, PhaseState, Status
from resources.document_state.transitions import derived


def made_again(
    doc: DocStatus,
    made: ArtifactSummary,
    now: datetime,
    *,
    parts: dict[str, str],
    corrections: Corrections | None,
    holding: Mapping[str, Mapping[str, str]],
    token: int,
) -> DocStatus:
    """The record of a document that was extracted, and whose record was lost.

    Args:
        doc: as a document nobody knew.
        made: its artifact.
        now: the time.
        parts: the fingerprint of its extraction.
        corrections: what people corrected in that artifact.
        holding: the stores that hold it as that artifact says, with the parts a link to them has.
        token: the largest any store remembers of it.
    """
    extraction = PhaseState(Status.COMPLETED, now, parts=parts)
    extracted = msgspec.structs.replace(
        doc, extraction=extraction, token=token, corrections=corrections, **made.fields()
    )
    return in_line(extracted, now, {}, holding)


def in_line(
    doc: DocStatus, now: datetime, fields: Mapping[str, object], holding: Mapping[str, Mapping[str, str]]
) -> DocStatus:
    """The record with what follows from its artifact, and links that say what stores rightly hold.

    Args:
        doc: its record, free.
        now: the time.
        fields: what follows from its artifact.
        holding: the stores that hold just that, with the parts a new link to them has.
    """
    doc = msgspec.structs.replace(doc, **fields)
    links = dict(doc.links)
    for slug, parts in holding.items():
        link = links.get(slug)
        if link is not None and is_current(doc, link) and link.chunkset_hash == doc.chunkset_hash:
            continue
        parts_now = {**(link.parts if link is not None and link.parts else parts), "content": doc.artifact_hash}
        pushed_at = link.last_push_at if link is not None else None
        links[slug] = DocumentStoreLink(slug, LinkState.INGESTED, doc.chunkset_hash, parts_now, pushed_at or now)
    due_in = (*doc.due_in, *(slug for slug in holding if slug not in doc.due_in))
    return derived(doc, now, links=links, due_in=due_in)
