"""The store kind `duckdb`: one file per store on one machine, searched by exact cosine similarity.

Many processes use the file in turn, behind a lock beside it. A call is one transaction.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np

from resources.artifact_store.artifact import Place
from resources.embedder.embedder import EmbedderStamp, Vectors
from resources.store import store_rules
from resources.store.content import chunk_checksums, contents_of_rows
from resources.store.document_changes import (
    Changes,
    DocumentRow,
    Held,
    Placement,
    changes_between,
    removals_allowed,
)
from resources.store.duckdb import columns, queries
from resources.store.duckdb.duckdb_file import DuckDBFile, Session
from resources.store.storable_texts import storable_build
from resources.store.store import (
    BuildResult,
    DocumentBuild,
    HeldContent,
    HeldDocument,
    Hit,
    Removal,
    Store,
    StoreCorruptError,
)


class DuckDBConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `ingest.toml` may say about a store of this kind. `lock_timeout` is in seconds."""

    path: str
    lock_timeout: float = 30.0
    memory_limit: str = "128MB"


class DuckDBStore(Store):
    """One index in one DuckDB file."""

    kind: ClassVar[str] = "duckdb"
    Config: ClassVar[type[msgspec.Struct]] = DuckDBConfig
    config_is_shown: ClassVar[bool] = True

    def __init__(
        self, slug: str, path: Path, stamp: EmbedderStamp, *, lock_timeout: float = 30.0, memory_limit: str = "128MB"
    ) -> None:
        super().__init__(slug, stamp)
        self._file = DuckDBFile(slug, path, self._create, lock_timeout=lock_timeout, memory_limit=memory_limit)

    @classmethod
    def from_config(cls, slug: str, stamp: EmbedderStamp, config: DuckDBConfig) -> "DuckDBStore":
        """See `Store.from_config`."""
        return cls(slug, Path(config.path), stamp, lock_timeout=config.lock_timeout, memory_limit=config.memory_limit)

    def held_chunks(self, document_ids: Sequence[str]) -> dict[str, set[str]]:
        """See `Store.held_chunks`."""
        held: dict[str, set[str]] = {document_id: set() for document_id in document_ids}
        with self._file.reading() as session:
            if session is not None and self._holds_our_vectors(session):
                for document_id, chunk_id in session.rows(queries.SELECT_HELD_CHUNKS, _ids(document_ids)):
                    held[document_id].add(chunk_id)
        return held

    def write(self, builds: Sequence[DocumentBuild]) -> list[BuildResult]:
        """See `Store.write`."""
        store_rules.check_builds(builds)
        if not builds:
            return []
        builds = [storable_build(build) for build in builds]
        with self._writing() as session:
            if not self._holds_our_vectors(session):
                self._adopt_embedder(session)
            changes = changes_between(_read_held(session, builds), builds)
            if not changes.is_empty():
                vectors = store_rules.vectors_of(self.slug, self.stamp, changes.new_chunks)
                _apply(session, changes, vectors, self.stamp)
        return changes.results

    def remove(self, removals: Sequence[Removal]) -> list[BuildResult]:
        """See `Store.remove`."""
        if not removals:
            return []
        store_rules.refuse_twice(removal.document_id for removal in removals)
        with self._writing() as session:
            document_ids = [removal.document_id for removal in removals]
            n_chunks = Counter(row[0] for row in session.rows(queries.SELECT_HELD_CHUNKS, _ids(document_ids)))
            to_apply, results = removals_allowed(_read_fences(session, document_ids), n_chunks, removals)
            if to_apply:
                _apply_removals(session, to_apply)
        return results

    def remaining(self, document_ids: Sequence[str]) -> set[str]:
        """See `Store.remaining`."""
        with self._file.reading() as session:
            if session is None:
                return set()
            self._check_version(session)
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
        store_rules.check_query(self.stamp, vector)
        with self._file.reading() as session:
            if k < 1 or session is None or not self._holds_our_vectors(session):
                return []
            rows = session.rows(
                queries.with_dimension(queries.SEARCH, self.stamp.dimension),
                {"vector": vector.tolist(), "k": k, "org_id": org_id, "document_id": document_id, "source": source},
            )
        return [_hit(row) for row in rows]

    def held_documents(self, after: str = "", limit: int = 10_000) -> list[HeldDocument]:
        """See `Store.held_documents`."""
        with self._file.reading() as session:
            if session is None:
                return []
            self._check_version(session)
            rows = session.rows(queries.SELECT_HELD_DOCUMENTS, {"after": after, "limit": limit})
        return [HeldDocument(*row) for row in rows]

    def held_contents(self, document_ids: Sequence[str]) -> dict[str, HeldContent]:
        """See `Store.held_contents`."""
        with self._file.reading() as session:
            if session is None or not self._holds_our_vectors(session):
                return {}
            older = self._version_of(session) < queries.SCHEMA_VERSION
            return _read_contents(session, document_ids, self.stamp, queries.without_checksum if older else str)

    def held_ids(self, after: str = "", limit: int = 10_000) -> list[str]:
        """See `Store.held_ids`."""
        with self._file.reading() as session:
            if session is None:
                return []
            self._check_version(session)
            return [row[0] for row in session.rows(queries.SELECT_HELD_IDS, {"after": after, "limit": limit})]

    def drop(self) -> None:
        """See `Store.drop`."""
        self._file.delete()

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """A transaction in a file of today's version; an older one is brought up in a transaction before."""
        with self._file.writing() as session:
            if self._version_of(session) == queries.SCHEMA_VERSION:
                yield session
                return
            for statement in queries.ADD_CHECKSUMS:
                session.rows(statement)
            session.rows(queries.UPDATE_VERSION, {"schema_version": queries.SCHEMA_VERSION})
        with self._file.writing() as session:
            yield session

    def _version_of(self, session: Session) -> int:
        self._check_version(session)
        version: int = session.rows(queries.SELECT_META)[0][0]
        return version

    def _check_version(self, session: Session) -> EmbedderStamp | None:
        """Refuse a file of a newer program; tell whose vectors it holds, None before the first write."""
        rows = session.rows(queries.SELECT_META)
        if len(rows) != 1:
            raise StoreCorruptError(
                self.slug, f"{self._file.path} does not say what it is. Drop it and build it again."
            )
        version, name, embedder_version, dimension = rows[0]
        store_rules.check_format(self.slug, str(self._file.path), version, queries.SCHEMA_VERSION)
        return EmbedderStamp(name, embedder_version, dimension) if name else None

    def _holds_our_vectors(self, session: Session) -> bool:
        """Whether the file is our embedder's; see `store_rules.holds_vectors_of`."""
        recorded = self._check_version(session)

        def has_chunks() -> bool:
            return bool(session.rows(queries.HAS_CHUNKS)[0][0])

        return store_rules.holds_vectors_of(self.stamp, recorded, has_chunks, self.slug)

    def _create(self, session: Session) -> None:
        for statement in (*queries.CREATE_TABLES, queries.with_dimension(queries.CREATE_CHUNKS, self.stamp.dimension)):
            session.rows(statement)
        session.rows(queries.INSERT_META, _meta(None))

    def _adopt_embedder(self, session: Session) -> None:
        session.rows(queries.with_dimension(queries.CREATE_CHUNKS, self.stamp.dimension))
        session.rows(queries.DELETE_META)
        session.rows(queries.INSERT_META, _meta(self.stamp))


def _meta(stamp: EmbedderStamp | None) -> dict[str, Any]:
    return {
        "schema_version": queries.SCHEMA_VERSION,
        "name": stamp and stamp.name,
        "version": stamp and stamp.version,
        "dimension": stamp and stamp.dimension,
    }


def _ids(document_ids: Sequence[str]) -> dict[str, list[str]]:
    return {"document_ids": list(document_ids)}


def _read_fences(session: Session, document_ids: Sequence[str]) -> Held:
    ids = _ids(document_ids)
    documents = {row[0]: DocumentRow(*row) for row in session.rows(queries.SELECT_DOCUMENTS, ids)}
    removed = dict(session.rows(queries.SELECT_REMOVED, ids))
    return Held(documents, removed, {}, {})


def _read_held(session: Session, builds: Sequence[DocumentBuild]) -> Held:
    fences = _read_fences(session, [build.document_id for build in builds])
    if not fences.documents:
        return fences
    ids = _ids(list(fences.documents))
    chunks: defaultdict[str, dict[str, Placement]] = defaultdict(dict)
    for document_id, chunk_id, org_id, source, ordinal, start, end, headings, *rest in session.rows(
        queries.SELECT_PLACED_CHUNKS, ids
    ):
        chunks[document_id][chunk_id] = Placement(org_id, source, ordinal, start, end, tuple(headings), *rest)
    entries: defaultdict[str, set[str]] = defaultdict(set)
    for document_id, entry_id in session.rows(queries.SELECT_HELD_ENTRIES, ids):
        entries[document_id].add(entry_id)
    return Held(
        fences.documents, fences.removed_tokens, chunks, {key: frozenset(value) for key, value in entries.items()}
    )


def _read_contents(
    session: Session, document_ids: Sequence[str], stamp: EmbedderStamp, adapted: Callable[[str], str]
) -> dict[str, HeldContent]:
    ids = _ids(document_ids)
    return contents_of_rows(
        stamp,
        session.rows(adapted(queries.SELECT_CONTENT_DOCUMENTS), ids),
        (
            (document_id, chunk_id, text, token, np.array(vector, np.float32), *rest)
            for document_id, chunk_id, text, token, vector, *rest in session.rows(
                adapted(queries.SELECT_CONTENT_CHUNKS), ids
            )
        ),
        session.rows(queries.SELECT_CONTENT_ENTRIES, ids),
    )


def _apply(session: Session, changes: Changes, vectors: Vectors, stamp: EmbedderStamp) -> None:
    if changes.rewritten:
        session.rows(queries.DELETE_CHUNKS_OF_DOCUMENTS, _ids(changes.rewritten))
        session.rows(queries.DELETE_ENTRIES_OF_DOCUMENTS, _ids(changes.rewritten))
    if changes.gone_chunks:
        session.with_table(queries.DELETE_CHUNKS, "given_ids", columns.ids_table(changes.gone_chunks))
    if changes.gone_entries:
        session.with_table(queries.DELETE_ENTRIES, "given_ids", columns.ids_table(changes.gone_entries))
    if changes.moved_chunks:
        session.with_table(
            queries.UPDATE_PLACED_CHUNKS, "given_chunks", columns.placed_chunks_table(changes.moved_chunks)
        )
    if changes.new_chunks:
        checksums = chunk_checksums(stamp, changes.new_chunks, vectors)
        rows = columns.chunks_table(changes.new_chunks, vectors, checksums)
        session.with_table(queries.INSERT_CHUNKS, "given_chunks", rows)
    if changes.new_entries:
        session.with_table(queries.INSERT_ENTRIES, "given_entries", columns.entries_table(changes.new_entries))
    if changes.documents:
        ids = _ids([build.document_id for build in changes.documents])
        session.rows(queries.DELETE_DOCUMENTS, ids)
        session.rows(queries.DELETE_REMOVED, ids)
        session.with_table(queries.INSERT_DOCUMENTS, "given_documents", columns.documents_table(changes.documents))


def _apply_removals(session: Session, removals: Sequence[Removal]) -> None:
    ids = _ids([removal.document_id for removal in removals])
    for query in (
        queries.DELETE_CHUNKS_OF_DOCUMENTS,
        queries.DELETE_ENTRIES_OF_DOCUMENTS,
        queries.DELETE_DOCUMENTS,
        queries.DELETE_REMOVED,
    ):
        session.rows(query, ids)
    session.with_table(queries.INSERT_REMOVED, "given_removed", columns.removals_table(removals))


def _hit(row: tuple[Any, ...]) -> Hit:
    score, document_id, source_uri, title, chunk_id, text, start, end, headings, *rest = row
    return Hit(score, document_id, source_uri, title, chunk_id, text, Place(start, end, tuple(headings), *rest))
