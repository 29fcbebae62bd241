"""The SQL of the journal, each query with its sentence."""

MIGRATIONS = (
    (
        # Answers; what is beside `body` is for counting and choosing, the truth is in it.
        """CREATE TABLE results(
            key TEXT PRIMARY KEY, org_id TEXT NOT NULL, model TEXT NOT NULL, at INTEGER NOT NULL,
            reservation_id TEXT NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
            micro_usd INTEGER NOT NULL, body BLOB NOT NULL) STRICT""",
        # Which documents use which answers.
        """CREATE TABLE uses(document_id TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY(document_id, key))
            STRICT, WITHOUT ROWID""",
        "CREATE INDEX uses_by_key ON uses(key)",
        # The calls of each reservation that is not settled.
        "CREATE TABLE logs(reservation_id TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT",
    ),
)

# The answers of keys.
FIND = "SELECT key, body FROM results WHERE key IN (SELECT value FROM json_each(?))"
# One answer's bytes.
BODY = "SELECT body FROM results WHERE key = ?"
# Keeps an answer in place of one that is damaged.
KEEP = "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Notes that a document uses an answer.
USE = "INSERT OR IGNORE INTO uses(document_id, key) VALUES (?, ?)"

READ_LOG = "SELECT body FROM logs WHERE reservation_id = ?"
READ_LOGS = "SELECT body FROM logs ORDER BY reservation_id"
WRITE_LOG = "INSERT OR REPLACE INTO logs(reservation_id, body) VALUES (?, ?)"
REMOVE_LOG = "DELETE FROM logs WHERE reservation_id = ?"

# Removes what a document uses and no other does.
FORGET_RESULTS = """
    DELETE FROM results WHERE key IN (SELECT key FROM uses WHERE document_id = :document_id)
    AND NOT EXISTS (SELECT 1 FROM uses WHERE uses.key = results.key AND uses.document_id <> :document_id)
"""
FORGET_USES = "DELETE FROM uses WHERE document_id = :document_id"

_SELECTED = """
    (:before IS NULL OR at < :before) AND (:model IS NULL OR model = :model) AND (:org_id IS NULL OR org_id = :org_id)
"""
_TOTALS = """
    SELECT org_id, model, count(*), sum(length(body)), sum(input_tokens), sum(output_tokens), sum(micro_usd)
    FROM results WHERE {} GROUP BY org_id, model ORDER BY org_id, model
"""
# What was paid from a reservation that is not settled may be needed again by whoever takes up its work.
_PRUNABLE = f"{_SELECTED} AND reservation_id NOT IN (SELECT reservation_id FROM logs)"  # noqa: S608 - of constants
# Adds up a selection.
TOTALS = _TOTALS.format(_SELECTED)
# Adds up what may be removed of it.
PRUNABLE = _TOTALS.format(_PRUNABLE)
# Removes that.
PRUNE = f"DELETE FROM results WHERE {_PRUNABLE}"  # noqa: S608 - of constants
# Removes what names an answer that is gone.
PRUNE_USES = "DELETE FROM uses WHERE NOT EXISTS (SELECT 1 FROM results WHERE results.key = uses.key)"
