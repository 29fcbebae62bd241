"""Every SQL statement of the SQLite backend, each named by what it answers."""

from functools import cache

# Times are stored as microseconds since 1970 in UTC: integers compare exactly and sort as time does.
# Each step takes a file from one format to the next; a step that was released is never changed.
MIGRATIONS = (
    (
        """
        CREATE TABLE records(
            kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,
            version INTEGER NOT NULL, write_id TEXT NOT NULL, due_at INTEGER, label TEXT NOT NULL,
            PRIMARY KEY (kind, key)
        ) STRICT
        """,
        "CREATE INDEX records_due ON records(kind, due_at, key) WHERE due_at IS NOT NULL",
        "CREATE INDEX records_label ON records(kind, label, key)",
    ),
    (
        # Thousands of records carry the same long label: it stands once, and its number in table and indexes, which
        # halves the time of a bulk load. Of older records it is not known whether they are open; one too many harms
        # nobody, since its label is looked at.
        "CREATE TABLE labels(id INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE) STRICT",
        "INSERT INTO labels(label) SELECT DISTINCT label FROM records",
        "ALTER TABLE records RENAME TO records_of_format_1",
        """
        CREATE TABLE records(
            kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,
            version INTEGER NOT NULL, write_id TEXT NOT NULL, due_at INTEGER, label INTEGER NOT NULL,
            open INTEGER NOT NULL, PRIMARY KEY (kind, key)
        ) STRICT
        """,
        """
        INSERT INTO records
        SELECT kind, key, value, version, write_id, due_at, (SELECT id FROM labels WHERE label = old.label), 1
        FROM records_of_format_1 AS old
        """,
        "DROP TABLE records_of_format_1",
        "CREATE INDEX records_due ON records(kind, due_at, key) WHERE due_at IS NOT NULL",
        "CREATE INDEX records_label ON records(kind, label)",
        "CREATE INDEX records_open ON records(kind, key, label) WHERE open = 1",
    ),
)

COLUMNS = "key, value, version, write_id, due_at, (SELECT label FROM labels WHERE id = records.label), open"

READ_MANY = f"SELECT {COLUMNS} FROM records WHERE kind = ? AND key IN (SELECT value FROM json_each(?))"  # noqa: S608

READ_STAMPS = """
SELECT key, version, write_id FROM records WHERE kind = ? AND key IN (SELECT value FROM json_each(?))
"""


@cache
def create(n: int) -> str:
    """Insert n rows, but those whose key is taken."""
    rows = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * n)
    return f"""
    INSERT INTO records(kind, key, value, version, write_id, due_at, label, open) VALUES {rows} ON CONFLICT DO NOTHING
    """  # noqa: S608


UPDATE = """
UPDATE records SET value = ?, version = ?, write_id = ?, due_at = ?, label = ?, open = ?
WHERE kind = ? AND key = ? AND version = ? AND write_id = ?
"""

REMOVE = "DELETE FROM records WHERE kind = ? AND key = ? AND version = ? AND write_id = ?"

LIST_PAGE = f"SELECT {COLUMNS} FROM records WHERE kind = ? AND key > ? ORDER BY key LIMIT ?"  # noqa: S608

LIST_PAGE_BY_LABEL = f"""
SELECT {COLUMNS} FROM records
WHERE kind = ? AND key > ? AND label IN (SELECT id FROM labels WHERE label IN (SELECT value FROM json_each(?)))
ORDER BY key LIMIT ?
"""  # noqa: S608

LIST_KEYS = "SELECT key FROM records WHERE kind = ? AND label = (SELECT id FROM labels WHERE label = ?)"

LIST_OPEN = "SELECT key, label FROM records WHERE kind = ? AND open = 1 ORDER BY key"

NO_LIMIT = -1  # as SQLite says it

LIST_DUE = """
SELECT due_at, key FROM records
WHERE kind = ? AND due_at IS NOT NULL AND due_at <= ? AND (due_at, key) > (?, ?)
ORDER BY due_at, key LIMIT ?
"""

COUNT_LABELS = """
SELECT labels.label, n FROM (SELECT label, count(*) AS n FROM records WHERE kind = ? GROUP BY label) AS counted
JOIN labels ON labels.id = counted.label
"""

ADD_LABEL = "INSERT OR IGNORE INTO labels(label) VALUES (?)"

LABEL_IDS = "SELECT label, id FROM labels WHERE label IN (SELECT value FROM json_each(?))"

LABELS = "SELECT id, label FROM labels"

# Steps from kind to kind by the index: a plain DISTINCT would read all of it.
LIST_KINDS = """
WITH RECURSIVE kinds(kind) AS (
    SELECT min(kind) FROM records
    UNION ALL
    SELECT (SELECT min(kind) FROM records WHERE kind > kinds.kind) FROM kinds WHERE kinds.kind IS NOT NULL
)
SELECT kind FROM kinds WHERE kind IS NOT NULL ORDER BY kind
"""
