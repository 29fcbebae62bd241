"""A store's rows, read and changed around it: what a disk, a person or another program may do."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import duckdb

from resources.store.opensearch.index import vector_name
from resources.store.opensearch.rows import row_key
from tests.store.opensearch_server import STAMP, OpenSearchServer


class Table(StrEnum):
    """The three kinds of rows every store has."""

    DOCUMENTS = "documents"
    CHUNKS = "chunks"
    ENTRIES = "entries"


class RawRow(NamedTuple):
    """A row, named as its store names it."""

    table: Table
    document_id: str
    id: Any


class RawRows(ABC):
    """All rows of one store."""

    vector_field: ClassVar[str] = "vector"

    @abstractmethod
    def all(self, table: Table) -> list[RawRow]:
        """Every row, in a fixed order."""

    @abstractmethod
    def chunk_texts(self) -> list[tuple[str, str]]:
        """Document and text of every chunk, whether a reader sees it or not."""

    @abstractmethod
    def fields(self, table: Table) -> Sequence[str]:
        """What `change` can change."""

    @abstractmethod
    def change(self, row: RawRow, field: str) -> None:
        """Put another value of the same type into a field."""

    @abstractmethod
    def remove(self, row: RawRow) -> None:
        """Take a row away."""

    @abstractmethod
    def forget_checksums(self) -> None:
        """Make the store one of the first format, which had none."""

    def of(self, document_id: str, table: Table) -> list[RawRow]:
        """The rows of a document."""
        return [row for row in self.all(table) if row.document_id == document_id]


_PLACEMENT = ("ordinal", "start_char", "end_char", "headings", "page", "last_page", "sheet", "first_row", "last_row")
_COLUMNS = {
    Table.DOCUMENTS: ("org_id", "source", "source_uri", "title", "fencing_token", "chunkset_hash", "n_chunks"),
    Table.CHUNKS: ("chunk_id", "org_id", "source", "text", "fencing_token", "vector", *_PLACEMENT),
    Table.ENTRIES: ("entry_id", "chunk_id", "kind", "text"),
}
_NUMBERS = frozenset(
    {"fencing_token", "n_chunks", "ordinal", "start_char", "end_char", "page", "last_page", "first_row", "last_row"}
)


def _columns(table: Table) -> Sequence[str]:
    checked = () if table is Table.ENTRIES else ("checksum",)
    return ("document_id", *_COLUMNS[table], *checked)


class DuckDBRows(RawRows):
    """Rows of a DuckDB file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self, table: Table) -> list[RawRow]:
        """See RawRows."""
        with self._connected() as connection:
            found = connection.execute(f"SELECT document_id, rowid FROM {table} ORDER BY ALL").fetchall()
        return [RawRow(table, *row) for row in found]

    def chunk_texts(self) -> list[tuple[str, str]]:
        """See RawRows."""
        with self._connected() as connection:
            return connection.execute("SELECT document_id, text FROM chunks").fetchall()

    def fields(self, table: Table) -> Sequence[str]:
        """See RawRows."""
        return _columns(table)

    def change(self, row: RawRow, field: str) -> None:
        """See RawRows."""
        if field == "vector":
            changed = "list_transform(vector, lambda x, i: CASE WHEN i = 5 THEN x + 1 ELSE x END)"
            value = f"CAST({changed} AS FLOAT[{STAMP.dimension}])"
        elif field == "headings":
            value = "list_append(headings, 'another')"
        elif field in _NUMBERS:
            value = f"coalesce({field}, 0) + 1"
        else:
            value = f"coalesce({field}, '') || 'x'"
        self._do(f"UPDATE {row.table} SET {field} = {value} WHERE rowid = {row.id}")

    def remove(self, row: RawRow) -> None:
        """See RawRows."""
        self._do(f"DELETE FROM {row.table} WHERE rowid = {row.id}")

    def forget_checksums(self) -> None:
        """See RawRows."""
        for table in (Table.DOCUMENTS, Table.CHUNKS):
            self._do(f"ALTER TABLE {table} DROP COLUMN checksum")
        self._do("UPDATE store_meta SET schema_version = 1")

    def _do(self, statement: str) -> None:
        with self._connected() as connection:
            connection.execute(statement).fetchall()

    @contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with duckdb.connect(str(self._path)) as connection:
            yield connection


class PgvectorRows(RawRows):
    """Rows of a pgvector store. `ask` sends a statement in which `{chunks}` and its like stand for the tables."""

    def __init__(self, ask: Any) -> None:
        self._ask = ask

    def all(self, table: Table) -> list[RawRow]:
        """See RawRows."""
        found = self._ask(f"SELECT document_id, ctid::text FROM {{{table}}} AS t ORDER BY t.*::text")
        return [RawRow(table, *row) for row in found]

    def chunk_texts(self) -> list[tuple[str, str]]:
        """See RawRows."""
        return self._ask("SELECT document_id, text FROM {chunks}")

    def fields(self, table: Table) -> Sequence[str]:
        """See RawRows."""
        return _columns(table)

    def change(self, row: RawRow, field: str) -> None:
        """See RawRows."""
        if field == "vector":
            value = "vector + (SELECT array_agg((g = 5)::int)::public.vector FROM generate_series(1, 64) AS g)"
        elif field == "headings":
            value = "array_append(headings, 'another')"
        elif field in _NUMBERS:
            value = f"coalesce({field}, 0) + 1"
        else:
            value = f"coalesce({field}, '') || 'x'"
        self._ask(f"UPDATE {{{row.table}}} SET {field} = {value} WHERE ctid = '{row.id}'")

    def remove(self, row: RawRow) -> None:
        """See RawRows."""
        self._ask(f"DELETE FROM {{{row.table}}} WHERE ctid = '{row.id}'")

    def forget_checksums(self) -> None:
        """See RawRows."""
        for table in (Table.DOCUMENTS, Table.CHUNKS):
            self._ask(f"ALTER TABLE {{{table}}} DROP COLUMN checksum")
        self._ask("UPDATE {meta} SET format_version = 1")


_KINDS = {Table.DOCUMENTS: "head", Table.CHUNKS: "chunk", Table.ENTRIES: "entry"}


class OpenSearchRows(RawRows):
    """Rows of an OpenSearch index."""

    vector_field = vector_name(STAMP)

    def __init__(self, server: OpenSearchServer, store: Any) -> None:
        self._server, self._store = server, store
        self._index = store._index.name

    def all(self, table: Table) -> list[RawRow]:
        """See RawRows."""
        rows = self._server.rows(self._store, _KINDS[table])
        return [RawRow(table, row["document_id"], row["id"]) for row in rows if not row.get("removed")]

    def chunk_texts(self) -> list[tuple[str, str]]:
        """See RawRows."""
        return [(row["document_id"], row["text"]) for row in self._server.rows(self._store, _KINDS[Table.CHUNKS])]

    def fields(self, table: Table) -> Sequence[str]:
        """See RawRows."""
        if table is Table.DOCUMENTS:
            return ("document_id", "generation", "embedder", *_COLUMNS[table], "checksum")
        if table is Table.ENTRIES:
            return ("document_id", "generation", "org_id", "source", "entry_id", "entry_kind", "chunk_id", "text")
        own = ("generation", "embedder", "is_zero", "place", "ordinal", "org_id", "source", "text", "fencing_token")
        return ("document_id", "chunk_id", *own, self.vector_field, "checksum")

    def change(self, row: RawRow, field: str) -> None:
        """See RawRows."""
        path = f"/{self._index}/_doc/{row.id}"
        source = next(found for found in self._server.rows(self._store, _KINDS[row.table]) if found["id"] == row.id)
        source = {key: value for key, value in source.items() if key not in {"id", "seq_no"}}
        source[field] = _other(source[field])
        routing = self._server.ask("GET", f"{path}?routing={_routing(row)}")["_routing"]
        self._server.ask("PUT", f"{path}?routing={routing}&refresh=true", source)

    def remove(self, row: RawRow) -> None:
        """See RawRows."""
        self._server.ask("DELETE", f"/{self._index}/_doc/{row.id}?routing={_routing(row)}&refresh=true")

    def forget_checksums(self) -> None:
        """See RawRows."""
        for table in (Table.DOCUMENTS, Table.CHUNKS):
            for row in self._server.rows(self._store, _KINDS[table]):
                source = {key: value for key, value in row.items() if key not in {"id", "seq_no", "checksum"}}
                routing = _routing(RawRow(table, row["document_id"], row["id"]))
                self._server.ask("PUT", f"/{self._index}/_doc/{row['id']}?routing={routing}&refresh=true", source)
        [mapping] = self._server.ask("GET", f"/{self._index}/_mapping").values()
        meta = mapping["mappings"]["_meta"] | {"format_version": 1}
        self._server.ask("PUT", f"/{self._index}/_mapping", {"_meta": meta})


def _routing(row: RawRow) -> str:
    return row_key(row.document_id)


def _other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [*value[:5], value[5] + 1, *value[6:]]
    if isinstance(value, dict):
        return value | {"start": value["start"] + 1}
    return f"{value}x"
