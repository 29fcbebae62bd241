"""Every SQL statement of the SQLite backend, each named by what it answers."""

# Times are stored as microseconds since 1970 in UTC: integers compare exactly and sort as time does.
SCHEMA = """
CREATE TABLE IF NOT EXISTS records(
    kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,
    version INTEGER NOT NULL, write_id TEXT NOT NULL, due_at INTEGER, label TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT;
CREATE INDEX IF NOT EXISTS records_due ON records(kind, due_at, key) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS records_label ON records(kind, label, key);
"""

COLUMNS = "key, value, version, write_id, due_at, label"

READ_MANY = f"SELECT {COLUMNS} FROM records WHERE kind = ? AND key IN (SELECT value FROM json_each(?))"  # noqa: S608

CREATE = """
INSERT INTO records(kind, key, value, version, write_id, due_at, label) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""

UPDATE = """
UPDATE records SET value = ?, version = ?, write_id = ?, due_at = ?, label = ?
WHERE kind = ? AND key = ? AND version = ? AND write_id = ?
"""

REMOVE = "DELETE FROM records WHERE kind = ? AND key = ? AND version = ? AND write_id = ?"

LIST_PAGE = f"SELECT {COLUMNS} FROM records WHERE kind = ? AND key > ? ORDER BY key LIMIT ?"  # noqa: S608

LIST_PAGE_BY_LABEL = f"""
SELECT {COLUMNS} FROM records
WHERE kind = ? AND key > ? AND label IN (SELECT value FROM json_each(?)) ORDER BY key LIMIT ?
"""  # noqa: S608

LIST_KEYS = "SELECT key FROM records WHERE kind = ? AND label = ? ORDER BY key"

LIST_DUE = """
SELECT due_at, key FROM records
WHERE kind = ? AND due_at IS NOT NULL AND due_at <= ? AND (due_at, key) > (?, ?)
ORDER BY due_at, key LIMIT ?
"""

COUNT_LABELS = "SELECT label, count(*) FROM records WHERE kind = ? GROUP BY label"
