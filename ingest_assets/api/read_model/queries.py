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

# When something was last written into each store, one row each: a document that goes takes nothing away from it.
PUSHES = """
CREATE TABLE store_pushes(
    org_id TEXT NOT NULL, store TEXT NOT NULL, pushed_at TEXT NOT NULL, PRIMARY KEY (org_id, store)
) STRICT, WITHOUT ROWID
"""
_IF_LATER = (
    "ON CONFLICT (org_id, store) DO UPDATE SET pushed_at = excluded.pushed_at WHERE excluded.pushed_at > pushed_at"
)


# A state file gets the table beside its records, and triggers that keep it up within the very transaction that writes
# a record. The state's own code knows nothing of it.
DROP = ("DROP TABLE IF EXISTS document_index", "DROP TABLE IF EXISTS store_pushes")
_ROW = """
key, json_extract(value, '$.org_id'), label,
substr(json_extract(value, '$.source_uri'), instr(json_extract(value, '$.source_uri'), ':') + 1)
"""
# A damaged record has no row: it may be no JSON, or lack what a row is made of. Once it is mended it gets one.
_IS_READABLE = """
CASE WHEN json_valid(value)
THEN json_type(value, '$.org_id') = 'text' AND instr(json_extract(value, '$.source_uri'), ':') > 0 END
"""


def _note_pushes(rows: str) -> str:
    """Note what the links in some records say; damaged ones say nothing. `rows` gives each as `value`."""
    return f"""
INSERT INTO store_pushes
SELECT json_extract(doc.record, '$.org_id'), link.key, max(json_extract(link.value, '$.last_push_at'))
FROM (SELECT CASE WHEN {_IS_READABLE} THEN value ELSE '{{}}' END AS record FROM {rows}) AS doc,
json_each(doc.record, '$.links') AS link
WHERE CASE link.type WHEN 'object' THEN json_type(link.value, '$.last_push_at') = 'text' END
GROUP BY 1, 2
{_IF_LATER}"""  # noqa: S608


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
FILL_PUSHES = _note_pushes(f"(SELECT CAST(value AS TEXT) AS value FROM records WHERE kind = '{KIND}')")  # noqa: S608
_NOTE_NEW = _note_pushes("(SELECT CAST(NEW.value AS TEXT) AS value)")
TRIGGERS = {
    "document_index_insert": f"""
        CREATE TRIGGER document_index_insert AFTER INSERT ON records WHEN NEW.kind = '{KIND}' BEGIN
            {_PUT_NEW}
            {_NOTE_NEW};
        END
    """,
    "document_index_mend": f"""
        CREATE TRIGGER document_index_mend AFTER UPDATE OF value ON records
        WHEN NEW.kind = '{KIND}' AND NOT EXISTS (SELECT 1 FROM document_index WHERE key = NEW.key) BEGIN
            {_PUT_NEW}
            {_NOTE_NEW};
        END
    """,  # noqa: S608
    "document_index_update": f"""
        CREATE TRIGGER document_index_update AFTER UPDATE OF label ON records
        WHEN NEW.kind = '{KIND}' AND NEW.label IS NOT OLD.label BEGIN
            UPDATE document_index SET label = NEW.label WHERE key = NEW.key;
            {_NOTE_NEW};
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
        PUSHES,
        "CREATE TABLE labels(id INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE) STRICT",
    ),
)
ADD_LABEL = "INSERT OR IGNORE INTO labels(label) VALUES (?)"
PUT = """
INSERT OR REPLACE INTO document_index(key, org_id, label, name, seen)
VALUES (?, ?, (SELECT id FROM labels WHERE label = ?), ?, ?)
"""
PUT_PUSH = f"INSERT INTO store_pushes(org_id, store, pushed_at) VALUES (?, ?, ?) {_IF_LATER}"  # noqa: S608
REMOVE_UNSEEN = "DELETE FROM document_index WHERE seen < ?"
REMOVE = "DELETE FROM document_index WHERE key = ?"
LABELS_OF = """
SELECT key, labels.label FROM document_index JOIN labels ON labels.id = document_index.label
WHERE key IN (SELECT value FROM json_each(?))
"""

LAST_PUSHES = "SELECT store, pushed_at FROM store_pushes WHERE org_id = ?"

# Labels are never changed nor taken away, so whoever knows some asks only for the newer ones.
LABELS = "SELECT id, label FROM labels"


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
