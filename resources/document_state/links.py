"""What can become of a link: what a store holds of a document, and whether that is owed to be written.

Each function gives the next link, or says what is so; `transitions.py` puts links into records.
"""

from datetime import datetime

import msgspec

from resources.document_state.model import LISTED, DocStatus, DocumentStoreLink, LinkState
from resources.document_state.reasons import Reason

ERROR_CHARACTERS = 300


def mark_ingested(doc: DocStatus, store: str, parts: dict[str, str], run_id: str, now: datetime) -> DocumentStoreLink:
    """The store holds the document's current content."""
    return DocumentStoreLink(store, LinkState.INGESTED, doc.chunkset_hash, parts, now, run_id)


def mark_stale(link: DocumentStoreLink) -> DocumentStoreLink:
    """What the store holds is of an older content, or somebody asked for it anew: the current one is owed."""
    return msgspec.structs.replace(link, state=LinkState.STALE, reason=None, error_message="", on_request=False)


def mark_outdated(link: DocumentStoreLink) -> DocumentStoreLink:
    """What the store holds is of an older configuration, or of before a person's correction: rebuilt on request only.

    For neither must spend by itself.
    """
    return msgspec.structs.replace(link, state=LinkState.STALE, on_request=True)


def mark_failed(doc: DocStatus, store: str, reason: Reason, error: str, run_id: str) -> DocumentStoreLink:
    """The store could not be written; what it held before, it holds."""
    link = doc.links.get(store, DocumentStoreLink(store, LinkState.FAILED))
    return msgspec.structs.replace(
        link,
        state=LinkState.FAILED,
        reason=reason,
        error_message=error[:ERROR_CHARACTERS],
        last_run_id=run_id,
        on_request=False,
    )


def superseded(link: DocumentStoreLink) -> DocumentStoreLink:
    """What the store holds is about to be replaced or removed, and if we die in between nobody knows which it is.

    Without its content in the fingerprint the link is current for nothing, not even for the old content come back.
    """
    return mark_stale(msgspec.structs.replace(link, parts={**link.parts, "content": ""}))


def source_changed(doc: DocStatus, link: DocumentStoreLink) -> DocumentStoreLink:
    """Its source has other content, or only says so: what waits for somebody to ask waits until extraction knows."""
    if doc.presence not in LISTED:
        return superseded(link)
    return link if link.on_request else mark_stale(link)


def left_behind(link: DocumentStoreLink, same_source: bool) -> DocumentStoreLink:
    """The document's content is another now, and this store is not built by who made it so.

    If its source has the same bytes as before, a configuration or a person made the difference: the store is left as
    it is.
    """
    if link.state is LinkState.FAILED:
        return msgspec.structs.replace(link, parts={**link.parts, "content": ""})
    if same_source and (link.on_request or link.state is LinkState.INGESTED):
        return mark_outdated(link)
    return superseded(link)


def compared(doc: DocStatus, link: DocumentStoreLink, at_configuration: bool | None) -> DocumentStoreLink:
    """The link, stale or ingested as the configuration says; None: the store is not configured.

    Only of what holds the content that extraction produced last: what is stale by content stays so.
    """
    if at_configuration is None or link.parts.get("content") != doc.artifact_hash:
        return link
    if at_configuration and link.on_request and link.state is LinkState.STALE:
        return msgspec.structs.replace(link, state=LinkState.INGESTED, on_request=False)
    if not at_configuration and link.state is LinkState.INGESTED:
        return mark_outdated(link)
    return link


def is_current(doc: DocStatus, link: DocumentStoreLink) -> bool:
    """Whether a store holds what extraction produced last."""
    return link.state is LinkState.INGESTED and link.parts.get("content") == doc.artifact_hash


def owes_content(doc: DocStatus, link: DocumentStoreLink) -> bool:
    """Whether a store is to be written without anybody asking. What is stale on request is not."""
    if link.state is LinkState.STALE:
        return not link.on_request
    return not is_current(doc, link)
