"""A search: a query in words, and the chunks of one store nearest to it."""

from ingest_assets.targets import Target
from resources.store.store import Hit

# So many of the chunks nearest in meaning are looked at for the query's words. Of 80 questions 71 find their document
# with 300, 77 with 1,000 and 76 with 3,000; a search of 80,000 chunks takes half as long again (measured).
_LOOKED_AT = 1_000


def nearest(
    target: Target,
    query: str,
    k: int,
    *,
    org_id: str,
    document_id: str | None = None,
    source: str | None = None,
) -> list[Hit]:
    """The k chunks of a store nearest to a query in meaning and words, best first, scored by `ranking`. Blocks.

    Args:
        target: the store, and what it embeds with.
        query: what to look for, in words.
        k: how many chunks.
        org_id: whose documents.
        document_id: only in this document.
        source: only in this source.

    Raises:
        StoreError: the store cannot be asked.
    """
    from ingest_assets.requests.ranking import ranked  # what takes words apart takes 10 ms to load

    query = query.encode(errors="replace").decode()  # what a terminal sends may be no text, which tokenizers refuse
    vector = target.embedder.embed([query])[0]
    near = target.store.search(vector, max(k, _LOOKED_AT), org_id=org_id, document_id=document_id, source=source)
    return ranked(query, near)[:k]
