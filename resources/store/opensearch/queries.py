"""The bodies of the store's searches, each with the sentence that says what it is for.

The shapes of `knn` with `filter` and of the scoring script `knn_score` are the ones OpenSearch documents.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

Body = dict[str, Any]

BY_DOCUMENT_AND_CHUNK = [{"document_id": "asc"}, {"chunk_id": "asc"}]
BY_ROW = [{"row": "asc"}]
BY_SCORE = [{"_score": "desc"}, *BY_DOCUMENT_AND_CHUNK]


def terms(**fields: Any) -> list[Body]:
    """Filters that a row must pass; a field that is None may be anything."""
    return [
        {"terms" if isinstance(value, list) else "term": {name: value}}
        for name, value in fields.items()
        if value is not None
    ]


def chosen(filters: Sequence[Body], without: Mapping[str, Collection[str]] | None = None) -> Body:
    """Rows that pass all filters, less those with one of some values."""
    query: Body = {"filter": list(filters)}
    excluded = [{"terms": {name: sorted(values)}} for name, values in (without or {}).items() if values]
    if excluded:
        query["must_not"] = excluded
    return {"bool": query}


def exact(field: str, vector: Sequence[float], query: Body, k: int) -> Body:
    """The nearest rows of a query: it filters first, then every vector that is left is looked at."""
    params = {"field": field, "query_value": vector, "space_type": "cosinesimil"}
    script = {"source": "knn_score", "lang": "knn", "params": params}
    return {"size": k, "query": {"script_score": {"query": query, "script": script}}, "sort": BY_SCORE}


def approximate(field: str, vector: Sequence[float], query: Body, k: int) -> Body:
    """The nearest rows of a query by the graph, filtered while it is walked."""
    return {"size": k, "query": {"knn": {field: {"vector": vector, "k": k, "filter": query}}}}


def rows_nobody_sees(document_id: str, generation: str, dead: Collection[str], fencing_token: int) -> Body:
    """A document's rows that are not of its generation: known ones, and all that an earlier claim's writer left."""
    mine = terms(document_id=document_id, kind=["chunk", "entry"])
    known = {"terms": {"generation": sorted(dead)}}
    earlier = {"range": {"fencing_token": {"lt": fencing_token}}}
    query: Body = {"filter": [*mine, {"bool": {"should": [known, earlier], "minimum_should_match": 1}}]}
    return {"bool": query | {"must_not": [{"term": {"generation": generation}}]}}


def any_of(queries: Sequence[Body]) -> Body:
    """Rows of any of the queries."""
    return {"query": {"bool": {"should": list(queries), "minimum_should_match": 1}}}


def counts_by_generation(generations: Sequence[str], embedder: str) -> Body:
    """How many entries some generations have, and how many chunks of an embedder's vectors."""
    sources = [{name: {"terms": {"field": name}}} for name in ("generation", "kind")]
    counts = {"composite": {"size": 2 * len(generations), "sources": sources}}
    either = {"bool": {"should": terms(kind="entry") + terms(embedder=embedder), "minimum_should_match": 1}}
    return {
        "size": 0,
        "query": chosen([*terms(generation=list(generations), kind=["chunk", "entry"]), either]),
        "aggs": {"counts": counts},
    }
