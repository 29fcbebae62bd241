"""The store kind `pgvector`: tables of its own in a PostgreSQL database, searched by exact cosine similarity.

Many processes on many machines use it at once. A call is one transaction: the claims' tokens decide between two
writers of a document, and a reader sees the store at one moment.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import msgspec

from resources.artifact_store.artifact import Place
from resources.embedder.embedder import EmbedderStamp, Vectors
from resources.store.content import contents_of_rows
from resources.store.document_changes import (
    Changes,
    DocumentRow,
    Held,
    Placement,
    RowId,
    changes_between,
    removals_allowed,
)
from resources.store.pgvector import queries, rows
from resources.store.pgvector.address import PgvectorConfig, check_config
from resources.store.pgvector.database import PgvectorDatabase, Session
from resources.store.pgvector.schema import adopt_embedder, create_tables, is_up_to_date, recorded_embedder
from resources.store.pgvector.tables import Tables
from resources.store.storable_texts import storable_build
from resources.store.store import (
    BuildResult,
    DocumentBuild,
    HeldContent,
    HeldDocument,
    Hit,
    Removal,
    Store,
    StoreConfigError,
    StoreUnavailableError,
)
from resources.store.store_rules import check_builds, check_query, holds_vectors_of, refuse_twice, vectors_of

# The extension's own limit.
_LARGEST_DIMENSION = 16_000
# Somebody may drop the store between making its tables and writing into them, but not for ever.
_ATTEMPTS = 5


class PgvectorStore(Store):
    """One index in a PostgreSQL database with the extension pgvector."""

    kind: ClassVar[str] = "pgvector"
    Config: ClassVar[type[msgspec.Struct]] = PgvectorConfig
    config_is_shown: ClassVar[bool] = True

    def __init__(self, slug: str, stamp: EmbedderStamp, config: PgvectorConfig) -> None:
        super().__init__(slug, stamp)
        check_config(slug, config)
        if stamp.dimension > _LARGEST_DIMENSION:
            raise StoreConfigError(slug, f"pgvector holds {_LARGEST_DIMENSION} numbers a vector; embedder: {stamp}.")
        self._tables = Tables(config.schema, slug, stamp.dimension)
        self._database = PgvectorDatabase(slug, config, self._tables)

    @classmethod
    def from_config(cls, slug: str, stamp: EmbedderStamp, config: PgvectorConfig) -> "PgvectorStore":
        """See `Store.from_config`."""
        return cls(slug, stamp, config)

    def held_chunks(self, document_ids: Sequence[str]) -> dict[str, set[str]]:
        """See `Store.held_chunks`."""
        held: dict[str, set[str]] = {document_id: set() for document_id in document_ids}
        with self._database.reading() as session:
            if session is not None and self._holds_our_vectors(session):
                for document_id, chunk_id in session.rows(queries.SELECT_HELD_CHUNKS, _ids(document_ids)):
                    held[document_id].add(chunk_id)
        return held

    def write(self, builds: Sequence[DocumentBuild]) -> list[BuildResult]:
        """See `Store.write`."""
        check_builds(builds)
        if not builds:
            return []
        builds = [storable_build(build) for build in builds]
        with self._writing(self._holds_our_vectors) as session:
            changes = changes_between(_read_held(session, builds), builds)
            if not changes.is_empty():
                _apply(session, changes, vectors_of(self.slug, self.stamp, changes.new_chunks), self.stamp)
        return changes.results

    def remove(self, removals: Sequence[Removal]) -> list[BuildResult]:
        """See `Store.remove`."""
        if not removals:
            return []
        refuse_twice(removal.document_id for removal in removals)
        with self._writing(self._is_readable) as session:
            ids = _ids([removal.document_id for removal in removals])
            fences = _take_documents(session, removals)
            n_chunks = Counter(row[0] for row in session.rows(queries.SELECT_HELD_CHUNKS, ids))
            to_apply, results = removals_allowed(fences, n_chunks, removals)
            if to_apply:
                _apply_removals(session, to_apply)
        return results

    def remaining(self, document_ids: Sequence[str]) -> set[str]:
        """See `Store.remaining`."""
        with self._database.reading() as session:
            if session is None:
                return set()
            recorded_embedder(self.slug, session)
            return {row[0] for row in session.rows(queries.SELECT_REMAINING, _ids(document_ids))}

    def search(
        self,
        vector: Vectors,
        k: int,
        *,
        org_id: str,
        document_id: str | None = None,
        source: str | None = None,
    ) -> list[Hit]:
        """See `Store.search`."""
        check_query(self.stamp, vector)
        with self._database.reading() as session:
            if k < 1 or session is None or not self._holds_our_vectors(session):
                return []
            found = session.rows(
                queries.SEARCH,
                {
                    "vector": str(vector.tolist()),
                    "k": k,
                    "org_id": org_id,
                    "document_id": document_id,
                    "source": source,
                },
            )
        return [_hit(row) for row in found]

    def held_documents(self, after: str = "", limit: int = 10_000) -> list[HeldDocument]:
        """See `Store.held_documents`."""
        with self._database.reading() as session:
            if session is None:
                return []
            recorded_embedder(self.slug, session)
            found = session.rows(queries.SELECT_HELD_DOCUMENTS, {"after": after, "limit": limit})
        return [HeldDocument(*row) for row in found]

    def held_contents(self, document_ids: Sequence[str]) -> dict[str, HeldContent]:
        """See `Store.held_contents`."""
        with self._database.reading() as session:
            if session is None or not self._holds_our_vectors(session):
                return {}
            return _read_contents(session, document_ids, self.stamp)

    def held_ids(self, after: str = "", limit: int = 10_000) -> list[str]:
        """See `Store.held_ids`."""
        with self._database.reading() as session:
            if session is None:
                return []
            recorded_embedder(self.slug, session)
            return [row[0] for row in session.rows(queries.SELECT_HELD_IDS, {"after": after, "limit": limit})]

    def drop(self) -> None:
        """See `Store.drop`."""
        with self._database.preparing() as session:
            session.rows(queries.DROP_TABLES)

    @contextmanager
    def _writing(self, is_ready: Callable[[Session], bool]) -> Iterator[Session]:
        """A transaction in a store that is ready; what it lacks is made in a transaction before."""
        for _ in range(_ATTEMPTS):
            with self._database.writing() as session:
                if session is not None and is_ready(session) and is_up_to_date(session):
                    yield session
                    return
            with self._database.preparing() as session:
                create_tables(self.slug, session, self._tables)
                if not is_ready(session):
                    adopt_embedder(session, self.stamp)
        raise StoreUnavailableError(self.slug, "is being dropped or taken over again and again. Try again later.")

    def _is_readable(self, session: Session) -> bool:
        recorded_embedder(self.slug, session)
        return True

    def _holds_our_vectors(self, session: Session) -> bool:
        recorded = recorded_embedder(self.slug, session)
        return holds_vectors_of(self.stamp, recorded, lambda: bool(session.rows(queries.HAS_CHUNKS)[0][0]), self.slug)


def _ids(document_ids: Sequence[str]) -> dict[str, list[str]]:
    return {"document_ids": list(document_ids)}


def _take_documents(session: Session, claimed: Sequence[DocumentBuild | Removal]) -> Held:
    """Keep other writers from these documents until the transaction ends; what they are now, without their parts."""
    ids = _ids([claim.document_id for claim in claimed])
    session.rows(queries.RAISE_FENCES, {**ids, "fencing_tokens": [claim.fencing_token for claim in claimed]})
    fences = dict(session.rows(queries.SELECT_FENCES, ids))
    documents = {row[0]: DocumentRow(*row) for row in session.rows(queries.SELECT_DOCUMENTS, ids)}
    removed = {document_id: token for document_id, token in fences.items() if document_id not in documents}
    return Held(documents, removed, {}, {})


def _read_held(session: Session, builds: Sequence[DocumentBuild]) -> Held:
    taken = _take_documents(session, builds)
    if not taken.documents:
        return taken
    ids = _ids(list(taken.documents))
    chunks: defaultdict[str, dict[str, Placement]] = defaultdict(dict)
    for document_id, chunk_id, org_id, source, ordinal, start, end, headings, *rest in session.rows(
        queries.SELECT_PLACED_CHUNKS, ids
    ):
        chunks[document_id][chunk_id] = Placement(org_id, source, ordinal, start, end, tuple(headings), *rest)
    entries: defaultdict[str, set[str]] = defaultdict(set)
    for document_id, entry_id in session.rows(queries.SELECT_HELD_ENTRIES, ids):
        entries[document_id].add(entry_id)
    return Held(
        taken.documents, taken.removed_tokens, chunks, {key: frozenset(value) for key, value in entries.items()}
    )


def _read_contents(session: Session, document_ids: Sequence[str], stamp: EmbedderStamp) -> dict[str, HeldContent]:
    ids = _ids(document_ids)
    checked = is_up_to_date(session)
    documents = queries.SELECT_CONTENT_DOCUMENTS if checked else queries.SELECT_UNCHECKED_DOCUMENTS
    chunks = queries.SELECT_CONTENT_CHUNKS if checked else queries.SELECT_UNCHECKED_CHUNKS
    return contents_of_rows(
        stamp,
        session.rows(documents, ids),
        (
            (document_id, chunk_id, text, token, rows.sent_vector(vector), *rest)
            for document_id, chunk_id, text, token, vector, *rest in session.rows(chunks, ids)
        ),
        session.rows(queries.SELECT_CONTENT_ENTRIES, ids),
    )


def _apply(session: Session, changes: Changes, vectors: Vectors, stamp: EmbedderStamp) -> None:
    if changes.rewritten:
        session.rows(queries.DELETE_CHUNKS_OF_DOCUMENTS, _ids(changes.rewritten))
        session.rows(queries.DELETE_ENTRIES_OF_DOCUMENTS, _ids(changes.rewritten))
    if changes.gone_chunks:
        session.rows(queries.DELETE_CHUNKS, _row_ids(changes.gone_chunks))
    if changes.gone_entries:
        session.rows(queries.DELETE_ENTRIES, _row_ids(changes.gone_entries))
    if changes.moved_chunks:
        session.each(
            queries.UPDATE_PLACED_CHUNK,
            [(*rows.placement_values(row), row.build.document_id, row.chunk.chunk_id) for row in changes.moved_chunks],
        )
    session.copy(queries.COPY_CHUNKS, rows.CHUNK_TYPES, rows.chunk_rows(changes.new_chunks, vectors, stamp))
    session.copy(queries.COPY_ENTRIES, rows.ENTRY_TYPES, rows.entry_rows(changes.new_entries))
    if changes.documents:
        session.each(queries.UPSERT_DOCUMENT, [rows.document_row(build) for build in changes.documents])


def _apply_removals(session: Session, removals: Sequence[Removal]) -> None:
    ids = _ids([removal.document_id for removal in removals])
    for query in (
        queries.DELETE_CHUNKS_OF_DOCUMENTS,
        queries.DELETE_ENTRIES_OF_DOCUMENTS,
        queries.DELETE_DOCUMENTS,
    ):
        session.rows(query, ids)


def _row_ids(row_ids: Sequence[RowId]) -> dict[str, list[str]]:
    return {"document_ids": [row.document_id for row in row_ids], "ids": [row.id for row in row_ids]}


def _hit(row: tuple[Any, ...]) -> Hit:
    score, document_id, source_uri, title, chunk_id, text, start, end, headings, *rest = row
    return Hit(score, document_id, source_uri, title, chunk_id, text, Place(start, end, tuple(headings), *rest))
