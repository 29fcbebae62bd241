"""The change a person makes to a document's record by correcting its chunks."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from resources.document_state.links import compared, left_behind
from resources.document_state.model import Corrections, DocStatus
from resources.document_state.transitions import derived


def corrected(
    doc: DocStatus,
    now: datetime,
    *,
    artifact: str,
    artifact_hash: str,
    chunkset_hash: str,
    warnings: tuple[str, ...],
    corrections: Corrections,
    is_current: Mapping[str, bool],
) -> DocStatus:
    """A person corrected chunks, or took corrections back; the claim under which it was done ends.

    What stores hold is left as it is and stale: such work is nobody's before somebody asks. A store that holds just the
    content that is there now is so no longer.

    Args:
        doc: its record, claimed; its extraction is complete.
        now: the time.
        artifact: key of the corrected artifact.
        artifact_hash: its hash.
        chunkset_hash: that of its chunks.
        warnings: what a person should know of it.
        corrections: how many it has now, and who changed them.
        is_current: for each configured store the document is in, whether that was made with today's configuration.
    """
    links = doc.links
    if artifact_hash != doc.artifact_hash:
        links = {slug: left_behind(link, same_source=True) for slug, link in links.items()}
    changed = msgspec.structs.replace(doc, artifact_hash=artifact_hash)
    return derived(
        doc,
        now,
        artifact=artifact,
        artifact_hash=artifact_hash,
        chunkset_hash=chunkset_hash,
        warnings=warnings,
        corrections=corrections,
        links={slug: compared(changed, link, is_current.get(slug)) for slug, link in links.items()},
        claim=None,
    )
