"""Every row an OpenSearch store holds of some documents, looked at: those no reader sees as well."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from resources.artifact_store.artifact import Place
from resources.embedder.embedder import EmbedderStamp
from resources.store.content import HeldChunk, HeldEntry, chunk_checksum, held_content
from resources.store.document_changes import DocumentRow, Placement
from resources.store.opensearch.index import embedder_key, vector_name
from resources.store.opensearch.queries import chosen, terms
from resources.store.opensearch.rows import Head, vector_of
from resources.store.opensearch.snapshot import Row, Snapshot
from resources.store.store import HeldContent, RowFault

_IDS_A_SEARCH = 1_000


def read_contents(view: Snapshot, document_ids: Sequence[str], stamp: EmbedderStamp) -> dict[str, HeldContent]:
    """What is held of each of some documents of which there is any row."""
    heads = view.heads(document_ids)
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for row in view.all_rows(chosen(terms(document_id=list(document_ids), kind=["chunk", "entry"]))):
        rows[row["document_id"]].append(row)
    standing = {key for key, head in heads.items() if not head.removed}
    return {key: _content(key, heads.get(key), rows.get(key, ()), stamp) for key in standing | rows.keys()}


def held_ids_after(view: Snapshot, after: str, limit: int) -> list[str]:
    """A page of the ids of all documents that stand or have a row, ascending."""
    found: list[str] = []
    rows = {"bool": {"must_not": [{"bool": {"filter": terms(kind="head", removed=True)}}]}}
    while len(found) < limit:
        size = min(limit - len(found), _IDS_A_SEARCH)
        behind = {"range": {"document_id": {"gt": found[-1] if found else after}}}
        body = {
            "size": size,
            "query": {"bool": {"filter": [rows, behind]}},
            "sort": [{"document_id": "asc"}],
            "_source": ["document_id"],
            "collapse": {"field": "document_id"},
        }
        page = [row["document_id"] for row in view.rows(body)]
        found += page
        if len(page) < size:
            break
    return found


def _content(document_id: str, head: Head | None, rows: Sequence[Row], stamp: EmbedderStamp) -> HeldContent:
    faults: Counter[RowFault] = Counter()
    stands = head is not None and not head.removed
    seen = [row for row in rows if head is not None and stands and row["generation"] == head.generation]
    faults[RowFault.UNSEEN] = len(rows) - len(seen)
    documents: list[tuple[DocumentRow, bool | None]] = []
    if head is not None and stands:
        documents.append((_document_row(head), head.checksum == head.checked().checksum if head.checksum else None))
    chunks = []
    entries = []
    for row in seen:
        if row["kind"] == "chunk":
            chunks.append(_chunk(row, stamp))
        else:
            entries.append(HeldEntry(row["entry_id"], row["chunk_id"], row["entry_kind"], row["text"]))
            faults[RowFault.DAMAGED_ENTRY] += head is not None and (row["org_id"], row["source"]) != (
                head.org_id,
                head.source,
            )
    if not stands:
        # Nobody sees its rows: they are not the rows of a document that lost its head.
        return HeldContent(document_id, _newest(head, rows), "", "", "", {k: n for k, n in faults.items() if n})
    found = held_content(document_id, documents, chunks, entries, faults)
    return msgspec.structs.replace(found, fencing_token=_newest(head, rows))


def _newest(head: Head | None, rows: Sequence[Row]) -> int:
    return max([row["fencing_token"] for row in rows] + ([head.fencing_token] if head else []), default=0)


def _document_row(head: Head) -> DocumentRow:
    return DocumentRow(
        head.document_id,
        head.org_id,
        head.source,
        head.source_uri,
        head.title,
        head.fencing_token,
        head.chunkset_hash,
        head.n_chunks,
        head.n_entries,
    )


def _chunk(row: Mapping[str, Any], stamp: EmbedderStamp) -> HeldChunk:
    place = msgspec.convert(row["place"], Place)
    placement = Placement.at(row["org_id"], row["source"], row["ordinal"], place)
    checksum = row.get("checksum")
    is_sound = None
    if checksum is not None:
        vector = vector_of(row, vector_name(stamp), stamp.dimension)
        computed = chunk_checksum(stamp, row["document_id"], row["chunk_id"], row["text"], row["fencing_token"], vector)
        # Searches find it by these two.
        is_found = row["embedder"] == embedder_key(stamp) and row["is_zero"] is not bool(vector.any())
        is_sound = checksum == computed and is_found
    return HeldChunk(row["chunk_id"], placement, row["text"], row["fencing_token"], is_sound)
