"""The tables of one store: a set of its own in a schema that stores may share."""

import hashlib
from typing import LiteralString

from psycopg import sql

_TABLES = ("meta", "fences", "documents", "entries", "chunks")
# PostgreSQL cuts names after 63 bytes, and two cut names could be one.
_LONGEST_PREFIX = 48


class Tables:
    """Fills a store's names into the statements of `queries`.

    A table is named after the store: `legal-v1_chunks`. No two stores share one, since no table's own name has an
    underscore.
    """

    def __init__(self, schema: str, slug: str, dimension: int) -> None:
        prefix = _prefix(slug)
        self.schema = schema
        self.meta = f"{prefix}_meta"
        self.dimension = dimension
        self._names: dict[str, sql.Composable] = {
            "schema": sql.Identifier(schema),
            "dimension": sql.Literal(int(dimension)),
        }
        self._names |= {table: sql.Identifier(schema, f"{prefix}_{table}") for table in _TABLES}

    def fill(self, query: LiteralString) -> sql.Composed:
        """The statement for this store."""
        return sql.SQL(query).format(**self._names)


def _prefix(slug: str) -> str:
    if len(slug.encode()) <= _LONGEST_PREFIX:
        return slug
    digest = hashlib.sha256(slug.encode()).hexdigest()[:16]
    return f"{slug.encode()[: _LONGEST_PREFIX - 16].decode(errors='ignore')}-{digest}"
