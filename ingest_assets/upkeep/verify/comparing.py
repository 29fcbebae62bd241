"""One document compared with itself: its record, its artifact, what a store holds. Nothing here reads or writes."""

from collections.abc import Mapping

import msgspec

from ingest_assets.engine.build_stage import document_build
from ingest_assets.upkeep.verify.difference import ARTIFACT, RECORD, Difference, What
from resources.artifact_store.artifact import Artifact, artifact_hash
from resources.document_state.model import GONE, LISTED, DocStatus, DocumentStoreLink, LinkState, Status
from resources.document_state.stored_record import RecordFault, StoredRecord
from resources.document_state.transitions import IMPORTED_PART
from resources.store.content import expected_content
from resources.store.store import HeldContent


class Held(msgspec.Struct, frozen=True):
    """What a store holds of one document (None: nothing), and whether that is exactly what the artifact says.

    `is_comparable`: there is an artifact to compare it with.
    """

    content: HeldContent | None
    is_right: bool
    is_comparable: bool


def compare(
    stored: StoredRecord, artifact: Artifact | None, contents: Mapping[str, HeldContent | None]
) -> list[Difference]:
    """Everything that differs about a document that nobody is working on.

    Args:
        stored: its record, as it stands.
        artifact: what the record names, if that is whole.
        contents: what each configured store holds of it.
    """
    doc = stored.doc
    if doc is None or stored.fault in (RecordFault.DAMAGED, RecordFault.ANOTHERS):
        return [Difference(stored.document_id, RECORD, What.RECORD_DAMAGED, str(stored.fault))]
    found = _of_record(stored, doc, artifact)
    held = {slug: held_of(doc, artifact, content) for slug, content in contents.items()}
    for slug in contents:
        found += _of_store(doc, slug, held[slug])
    return found


def held_of(doc: DocStatus, artifact: Artifact | None, content: HeldContent | None) -> Held:
    """What a store holds beside what it should."""
    is_right = (
        content is not None
        and artifact is not None
        and not content.faults
        and content.content_hash == expected_content(document_build(doc, artifact, {}))
    )
    return Held(content, is_right, artifact is not None)


def artifact_fields(artifact: Artifact) -> dict[str, object]:
    """The fields of a record that follow from its artifact."""
    return {
        "artifact_hash": artifact_hash(artifact),
        "chunkset_hash": artifact.chunkset_hash,
        "title": artifact.title,
        "media_type": artifact.media_type,
        "n_chunks": len(artifact.chunks),
        "n_entries": len(artifact.entries),
    }


def _of_record(stored: StoredRecord, doc: DocStatus, artifact: Artifact | None) -> list[Difference]:
    if stored.fault is not None:
        return [Difference(doc.document_id, RECORD, What.RECORD_DIFFERS, str(stored.fault))]
    if artifact is not None and artifact.document_id == doc.document_id:
        wrong = [name for name, value in artifact_fields(artifact).items() if getattr(doc, name) != value]
        if wrong:
            return [Difference(doc.document_id, RECORD, What.RECORD_DIFFERS, f"from its artifact: {', '.join(wrong)}")]
        return []
    if needs_artifact(doc):
        return [Difference(doc.document_id, ARTIFACT, What.ARTIFACT_LOST, "lost or damaged")]
    return []


def needs_artifact(doc: DocStatus) -> bool:
    """Whether what extraction made of the document must be there."""
    is_extracted = doc.extraction.status is Status.COMPLETED and IMPORTED_PART not in doc.extraction.parts
    return doc.presence in LISTED and is_extracted


def _of_store(doc: DocStatus, slug: str, held: Held) -> list[Difference]:
    content, link = held.content, doc.links.get(slug)
    found = []
    if content is not None and content.faults:
        said = ", ".join(f"{fault}: {n}" for fault, n in sorted(content.faults.items()))
        found.append(Difference(doc.document_id, slug, What.ROWS_DAMAGED, said))
    elif content is not None and content.fencing_token > doc.token:
        said = f"token {content.fencing_token} is ahead of the record's {doc.token}"
        found.append(Difference(doc.document_id, slug, What.ROWS_DAMAGED, said))
    if doc.presence in GONE or (link is None and slug not in doc.due_in):
        if content is not None:
            why = f"it is {doc.presence}" if doc.presence in GONE else "its record names no such store"
            return [Difference(doc.document_id, slug, What.NOT_WANTED, why)]
        return []
    if doc.presence not in LISTED or link is None or not says_it_is_held(link):
        return found  # owed: the next run writes or removes it
    return found or _of_link(doc, slug, link, held)


def says_it_is_held(link: DocumentStoreLink) -> bool:
    """Whether the store is said to hold just what the link names."""
    return link.state is LinkState.INGESTED or (link.state is LinkState.STALE and link.on_request)


def _of_link(doc: DocStatus, slug: str, link: DocumentStoreLink, held: Held) -> list[Difference]:
    content = held.content
    if content is None:
        return [Difference(doc.document_id, slug, What.NOT_HELD)]
    if held.is_comparable and link.parts.get("content") == doc.artifact_hash:
        if not held.is_right:
            return [Difference(doc.document_id, slug, What.CONTENT_DIFFERS, "from what was extracted")]
        if link.chunkset_hash != doc.chunkset_hash:
            return [Difference(doc.document_id, slug, What.LINK_DIFFERS, "chunk set")]
    elif content.chunkset_hash != link.chunkset_hash:
        return [Difference(doc.document_id, slug, What.CONTENT_DIFFERS, "from what the link names")]
    return []
