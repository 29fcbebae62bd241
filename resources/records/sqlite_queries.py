"""Every SQL statement of the SQLite backend, each named by what it answers."""

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
        # Of older records it is not known, and an open one too many harms nobody: its label is looked at.
        "ALTER TABLE records ADD COLUMN open INTEGER NOT NULL DEFAULT 1",
        "CREATE INDEX records_open ON records(kind, key, label) WHERE open = 1",
    ),
)

COLUMNS = "key, value, version, write_id, due_at, label, open"

READ_MANY = f"SELECT {COLUMNS} FROM records WHERE kind = ? AND key IN (SELECT value FROM json_each(?))"  # noqa: S608

CREATE = """
INSERT INTO records(kind, key, value, version, write_id, due_at, label, open) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""

UPDATE = """
UPDATE records SET value = ?, version = ?, write_id = ?, due_at = ?, label = ?, open = ?
WHERE kind = ? AND key = ? AND version = ? AND write_id = ?
"""

REMOVE = "DELETE FROM records WHERE kind = ? AND key = ? AND version = ? AND write_id = ?"

LIST_PAGE = f"SELECT {COLUMNS} FROM records WHERE kind = ? AND key > ? ORDER BY key LIMIT ?"  # noqa: S608

LIST_PAGE_BY_LABEL = f"""
SELECT {COLUMNS} FROM records
WHERE kind = ? AND key > ? AND label IN (SELECT value FROM json_each(?)) ORDER BY key LIMIT ?
"""  # noqa: S608

LIST_KEYS = "SELECT key FROM records WHERE kind = ? AND label = ? ORDER BY key"

LIST_OPEN = "SELECT key, label FROM records WHERE kind = ? AND open = 1 ORDER BY key"

LIST_DUE = """
SELECT due_at, key FROM records
WHERE kind = ? AND due_at IS NOT NULL AND due_at <= ? AND (due_at, key) > (?, ?)
ORDER BY due_at, key LIMIT ?
"""

COUNT_LABELS = "SELECT label, count(*) FROM records WHERE kind = ? GROUP BY label"

# Steps from kind to kind by the index: a plain DISTINCT would read all of it.
LIST_KINDS = """
WITH RECURSIVE kinds(kind) AS (
    SELECT min(kind) FROM records
    UNION ALL
    SELECT (SELECT min(kind) FROM records WHERE kind > kinds.kind) FROM kinds WHERE kinds.kind IS NOT NULL
)
SELECT kind FROM kinds WHERE kind IS NOT NULL ORDER BY kind
"""
