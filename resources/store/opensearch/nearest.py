"""The rows nearest to a vector: three ways to find candidates, one way to score them.

Whoever finds the candidates, the cosine a reader is shown is computed here from the rows' vectors: it is the same in
every version and engine, whatever the server makes of it for its own score.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np

from resources.embedder.embedder import Vectors
from resources.store.opensearch.queries import BY_DOCUMENT_AND_CHUNK, BY_ROW, Body, approximate, chosen, exact
from resources.store.opensearch.rows import vector_of
from resources.store.opensearch.snapshot import Row, Snapshot
from resources.store.store import StoreConfigError

# What an index answers with at most, unless it is told otherwise.
LARGEST_K = 10_000
# All vectors of a search by the client come here: 256 numbers are about 5 kB on the way.
_MOST_FOR_CLIENT = 20_000


class Scored(NamedTuple):
    """A candidate; smaller is nearer, ties by document and chunk."""

    distance: float
    document_id: str
    chunk_id: str
    row: Row


@dataclass(frozen=True)
class VectorField:
    """Where rows have their vectors. `others` and `zero` choose the rows with and without one, if some have none.

    `order` is one in which no two rows are equal.
    """

    name: str
    dimension: int
    others: list[Body] = field(default_factory=list)
    zero: list[Body] = field(default_factory=list)
    order: Sequence[Body] = field(default_factory=lambda: BY_ROW)


class Nearest:
    """Finds the k nearest among the rows that pass some filters, less those with certain values."""

    def __init__(self, store: str, mode: str, vectors: VectorField) -> None:
        self._store = store
        self._mode = mode
        self._vectors = vectors

    def find(
        self, view: Snapshot, vector: Vectors, k: int, filters: Sequence[Body], without: Mapping[str, Collection[str]]
    ) -> list[Scored]:
        """The nearest rows, best first."""
        if not vector.any():
            # Near to nothing: all score 0.
            best = list(self._scored(view.rows(_first(chosen(filters, without), k)), vector))
        else:
            query = chosen([*filters, *self._vectors.others], without)
            best = _best(self._scored(self._candidates(view, vector, k, query), vector), k)
            if self._vectors.zero and (len(best) < k or best[-1].distance >= 0):
                zeros = view.rows(_first(chosen([*filters, *self._vectors.zero], without), k))
                best += self._scored(zeros, vector)
        return _best(best, k)

    def _candidates(self, view: Snapshot, vector: Vectors, k: int, query: Body) -> Iterable[Row]:
        if self._mode == "client":
            return self._all(view, query)
        search = exact if self._mode == "exact" else approximate
        return view.rows(search(self._vectors.name, vector.tolist(), query, k))

    def _all(self, view: Snapshot, query: Body) -> Iterable[Row]:
        for n, row in enumerate(view.all_rows(query, order=self._vectors.order), start=1):
            if n > _MOST_FOR_CLIENT:
                raise StoreConfigError(
                    self._store,
                    f"search = 'client' is for at most {_MOST_FOR_CLIENT} chunks a search. Set it to 'exact'.",
                )
            yield row

    def _scored(self, rows: Iterable[Row], vector: Vectors) -> Iterator[Scored]:
        query = vector.astype(np.float64)
        for row in rows:
            found = vector_of(row, self._vectors.name, self._vectors.dimension).astype(np.float64)
            yield Scored(-_cosine(found, query), row["document_id"], row["chunk_id"], row)


def _best(scored: Iterable[Scored], k: int) -> list[Scored]:
    return nsmallest(k, scored, key=lambda candidate: candidate[:3])


def _first(query: Body, k: int) -> dict[str, Any]:
    return {"size": k, "query": query, "sort": BY_DOCUMENT_AND_CHUNK}


def _cosine(one: Any, other: Any) -> float:
    length = float(np.sqrt(one @ one) * np.sqrt(other @ other))
    return float(one @ other) / length if length else 0.0
