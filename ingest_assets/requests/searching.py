"""A search: a query in words, and the chunks of one store nearest to it."""

from ingest_assets.targets import Target
from resources.store.store import Hit


def nearest(
    target: Target,
    query: str,
    k: int,
    *,
    org_id: str,
    document_id: str | None = None,
    source: str | None = None,
) -> list[Hit]:
    """The k chunks of a store nearest to a query, best first; only of this organisation. Blocks.

    Raises:
        StoreError: the store cannot be asked.
    """
    vector = target.embedder.embed([query])[0]
    return target.store.search(vector, k, org_id=org_id, document_id=document_id, source=source)
