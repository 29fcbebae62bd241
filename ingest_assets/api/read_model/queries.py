"""Every SQL statement of the read model, each named by what it does.

The table holds what lists are filtered by and nothing else, so that reading all of it is quick: 100,000 rows are 15 MB.
`name` is the key in its source, percent-encoded as in the source URI; it and `org_id` never change.
"""

from resources.document_state.document_state_store import KIND

TABLE = """
CREATE TABLE document_index(
    key TEXT NOT NULL PRIMARY KEY, org_id TEXT NOT NULL, label INTEGER NOT NULL, name TEXT NOT NULL
) STRICT, WITHOUT ROWID
"""
INDEX = "CREATE INDEX document_index_label ON document_index(org_id, label)"

# A state file gets the table beside its records, and triggers that keep it up within the very transaction that writes
# a record. The state's own code knows nothing of it.
DROP = ("DROP TABLE IF EXISTS document_index",)
_ROW = """
key, json_extract(value, '$.org_id'), label,
substr(json_extract(value, '$.source_uri'), instr(json_extract(value, '$.source_uri'), ':') + 1)
"""
# A damaged record has no row: it may be no JSON, or lack what a row is made of. Once it is mended it gets one.
_IS_READABLE = """
CASE WHEN json_valid(value)
THEN json_type(value, '$.org_id') = 'text' AND instr(json_extract(value, '$.source_uri'), ':') > 0 END
"""
FILL = f"""
INSERT INTO document_index
SELECT {_ROW} FROM (SELECT key, label, CAST(value AS TEXT) AS value FROM records WHERE kind = '{KIND}')
WHERE {_IS_READABLE}
"""  # noqa: S608
_PUT_NEW = f"""
INSERT OR REPLACE INTO document_index
SELECT {_ROW} FROM (SELECT NEW.key AS key, NEW.label AS label, CAST(NEW.value AS TEXT) AS value)
WHERE {_IS_READABLE};
"""  # noqa: S608
TRIGGERS = {
    "document_index_insert": f"""
        CREATE TRIGGER document_index_insert AFTER INSERT ON records WHEN NEW.kind = '{KIND}' BEGIN
            {_PUT_NEW}
        END
    """,
    "document_index_mend": f"""
        CREATE TRIGGER document_index_mend AFTER UPDATE OF value ON records
        WHEN NEW.kind = '{KIND}' AND NOT EXISTS (SELECT 1 FROM document_index WHERE key = NEW.key) BEGIN
            {_PUT_NEW}
        END
    """,  # noqa: S608
    "document_index_update": f"""
        CREATE TRIGGER document_index_update AFTER UPDATE OF label ON records
        WHEN NEW.kind = '{KIND}' AND NEW.label IS NOT OLD.label BEGIN
            UPDATE document_index SET label = NEW.label WHERE key = NEW.key;
        END
    """,  # noqa: S608
    "document_index_delete": f"""
        CREATE TRIGGER document_index_delete AFTER DELETE ON records WHEN OLD.kind = '{KIND}' BEGIN
            DELETE FROM document_index WHERE key = OLD.key;
        END
    """,  # noqa: S608
}
STATEMENTS_OF_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'records'"

# A replica of another backend's state has the table and its labels in a file of its own.
REPLICA = (
    (
        TABLE.replace("name TEXT NOT NULL", "name TEXT NOT NULL, seen INTEGER NOT NULL"),
        INDEX,
        "CREATE TABLE labels(id INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE) STRICT",
    ),
)
ADD_LABEL = "INSERT OR IGNORE INTO labels(label) VALUES (?)"
PUT = """
INSERT OR REPLACE INTO document_index(key, org_id, label, name, seen)
VALUES (?, ?, (SELECT id FROM labels WHERE label = ?), ?, ?)
"""
REMOVE_UNSEEN = "DELETE FROM document_index WHERE seen < ?"
REMOVE = "DELETE FROM document_index WHERE key = ?"
LABELS_OF = """
SELECT key, labels.label FROM document_index JOIN labels ON labels.id = document_index.label
WHERE key IN (SELECT value FROM json_each(?))
"""

# Labels are never changed nor taken away, so whoever knows some asks only for the newer ones.
NEW_LABELS = "SELECT id, label FROM labels WHERE id > ? ORDER BY id"


def page(n_patterns: int) -> str:
    """The next ids of one organisation with one of some labels, and a name like one of some patterns, if there are."""
    return f"SELECT key FROM document_index WHERE key > :after AND {_chosen(n_patterns)} ORDER BY key LIMIT :limit"  # noqa: S608


def count(n_patterns: int) -> str:
    """How many of them carry each label."""
    return f"SELECT label, count(*) FROM document_index WHERE {_chosen(n_patterns)} GROUP BY label"  # noqa: S608


def _chosen(n_patterns: int) -> str:
    like = " OR ".join(f"name LIKE :pattern{number} ESCAPE '\\'" for number in range(n_patterns))
    chosen = "org_id = :org_id AND label IN (SELECT value FROM json_each(:labels))"
    return f"{chosen} AND ({like})" if like else chosen
