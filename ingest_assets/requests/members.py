"""The documents that lie in other documents."""

from collections.abc import Sequence

from ingest_assets.components import Components
from resources.document_source.containers import is_container
from resources.document_source.document_ids import is_below
from resources.document_state.model import DocStatus


async def members_of(components: Components, docs: Sequence[DocStatus]) -> list[DocStatus]:
    """Every document that lies in one of these, however deep, whatever became of it. Costs their sources' records."""
    containers = [doc for doc in docs if is_container(doc.source_uri)]
    if not containers:
        return []
    sources = {doc.source for doc in containers}
    named = {doc.document_id for doc in docs}
    return [
        doc
        async for doc in components.state.iter_statuses(lambda label: label.source in sources)
        if doc.document_id not in named
        and any(doc.org_id == outer.org_id and is_below(doc.source_uri, outer.source_uri) for outer in containers)
    ]
