"""The bugs that this project's rules forbid, each with the test that must catch it.

A bug that lives in a backend's own code has an entry for each backend; to add one for a new backend, add a `Bug` here.
"""

from typing import NamedTuple


class Bug(NamedTuple):
    """One bug.

    Attributes:
        number: which of the twelve it is.
        name: what is wrong.
        where: the backend whose code it is in, or "all" where the rule stands above them.
        file: the file that is changed.
        text: what stands there, exactly once.
        planted: what stands there instead.
        caught_by: the test that must fail, as pytest names it.
        seen_in_histories: whether the linearizability of histories must break as well; the test is `HISTORIES[where]`.
    """

    number: int
    name: str
    where: str
    file: str
    text: str
    planted: str
    caught_by: str
    seen_in_histories: bool = False


_MEMORY = "resources/records/memory_backend.py"
_SQLITE = "resources/records/sqlite_backend.py"
_SQL = "resources/records/sqlite_queries.py"
_S3 = "resources/records/s3/s3_backend.py"
_S3_SHARD = "resources/records/s3/shard.py"
_S3_SNAPSHOT = "resources/records/s3/snapshot.py"
_DYNAMODB = "resources/records/dynamodb/dynamodb_backend.py"
_DYNAMODB_ITEMS = "resources/records/dynamodb/item_calls.py"
_WORKERS = "resources/document_state/workers.py"
_ON_MEMORY = "tests/records/test_memory_backend.py::TestMemoryBackend"
_ON_SQLITE = "tests/records/test_sqlite_backend.py::TestSqliteBackend"
_ON_S3 = "tests/records/test_s3_contract.py::TestOnMoto"
_ON_DYNAMODB = "tests/records/test_dynamodb_backend.py::TestOnMoto"
_WORKER_TESTS = "tests/document_state/test_workers.py"
_STATE_TESTS = "tests/document_state/test_document_state_store.py::TestOnSqlite"

HISTORIES = {
    "memory": "tests/linearizability/test_histories.py::TestOnMemory",
    "sqlite": "tests/linearizability/test_histories.py::TestOnSqlite",
    "s3": "tests/linearizability/test_histories_on_s3.py::TestOnMoto",
    "dynamodb": "tests/linearizability/test_histories_on_dynamodb.py::TestOnMoto",
    "all": "tests/linearizability/test_histories.py::TestOnSqlite",
}

_UPDATED = """ON CONFLICT DO UPDATE SET
    value = excluded.value, version = excluded.version, write_id = excluded.write_id, due_at = excluded.due_at,
    label = excluded.label, open = excluded.open"""

BUGS = (
    Bug(
        1,
        "no condition on update",
        "memory",
        _MEMORY,
        "!= write.expected:",
        "!= write.expected and write.expected is None:",
        f"{_ON_MEMORY}::test_lost_update_is_refused",
        seen_in_histories=True,
    ),
    Bug(
        1,
        "no condition on update",
        "sqlite",
        _SQL,
        'WHERE kind = ? AND key = ? AND version = ? AND write_id = ?\n"""',
        'WHERE kind = ? AND key = ? AND (version = ? AND write_id = ? OR TRUE)\n"""',
        f"{_ON_SQLITE}::test_lost_update_is_refused",
        seen_in_histories=True,
    ),
    Bug(
        1,
        "no condition on update",
        "s3",
        _S3_SHARD,
        "if current != write.expected:",
        "if current != write.expected and write.expected is None:",
        f"{_ON_S3}::test_lost_update_is_refused",
        seen_in_histories=True,
    ),
    Bug(
        1,
        "no condition on update",
        "dynamodb",
        _DYNAMODB_ITEMS,
        "condition = _ABSENT if expected is None else _is(expected)",
        "condition = _ABSENT if expected is None else {}",
        f"{_ON_DYNAMODB}::test_lost_update_is_refused",
        seen_in_histories=True,
    ),
    Bug(
        1,
        "a shard is put over whatever is there",
        "s3",
        "resources/records/s3/shard_writer.py",
        "self._bucket.put(self._name, head, stored.etag)",
        "self._bucket.put(self._name, head, self._reader.read(self._kind, self._number).etag)",
        "tests/records/test_processes.py::TestOnS3::test_many_processes_lose_no_change",
        seen_in_histories=True,
    ),
    Bug(
        2,
        "no condition on create",
        "memory",
        _MEMORY,
        "!= write.expected:",
        "!= write.expected and write.expected is not None:",
        f"{_ON_MEMORY}::test_create_only_if_absent",
        seen_in_histories=True,
    ),
    Bug(
        2,
        "no condition on create",
        "sqlite",
        _SQL,
        "ON CONFLICT DO NOTHING",
        _UPDATED,
        f"{_ON_SQLITE}::test_create_only_if_absent",
        seen_in_histories=True,
    ),
    Bug(
        2,
        "no condition on create",
        "s3",
        _S3_SHARD,
        "if current != write.expected:",
        "if current != write.expected and write.expected is not None:",
        f"{_ON_S3}::test_create_only_if_absent",
        seen_in_histories=True,
    ),
    Bug(
        2,
        "no condition on create",
        "dynamodb",
        _DYNAMODB_ITEMS,
        "condition = _ABSENT if expected is None else _is(expected)",
        "condition = {} if expected is None else _is(expected)",
        f"{_ON_DYNAMODB}::test_create_only_if_absent",
        seen_in_histories=True,
    ),
    Bug(
        3,
        "a write id is used again",
        "all",
        "resources/records/record.py",
        "return secrets.token_urlsafe(8)",
        'return "always the same"',
        f"{_ON_SQLITE}::test_value_that_came_back_is_not_the_same_state",
        seen_in_histories=True,
    ),
    Bug(
        4,
        "an own write is not recognised",
        "all",
        "resources/records/backend.py",
        "includes_ours = found_stamp is not None and found_stamp.includes(stamp)",
        "includes_ours = False",
        f"{_ON_SQLITE}::test_lost_reply_counts_as_written",
        seen_in_histories=True,
    ),
    Bug(
        4,
        "an own write is not recognised once others have built on it",
        "all",
        "resources/records/record.py",
        "return earlier.write_id.partition(_SEPARATOR)[0] in self.write_id.split(_SEPARATOR)",
        "return earlier.write_id == self.write_id",
        f"{_ON_SQLITE}::test_own_write_is_recognised_below_others",
        seen_in_histories=True,
    ),
    Bug(
        5,
        "a lease ends by the owner's clock",
        "all",
        _WORKERS,
        "or now - last.seen >= self._lease:",
        "or (datetime.now(record.started_at.tzinfo) - record.started_at).total_seconds() >= self._lease:",
        f"{_WORKER_TESTS}::TestWatch::test_wall_clocks_change_nothing",
    ),
    Bug(
        6,
        "tokens are not compared",
        "all",
        "resources/store/document_changes.py",
        "return newest > fencing_token",
        "return newest < 0",
        "tests/store/test_duckdb_store.py::TestDuckDBStore::test_later_claim_fences_the_earlier",
    ),
    Bug(
        7,
        "the cursor skips equal due times",
        "memory",
        _MEMORY,
        "if after is None or d > after",
        "if after is None or d.due_at > after.due_at",
        f"{_ON_MEMORY}::test_due_listing_goes_on_over_equal_times",
    ),
    Bug(
        7,
        "the cursor skips equal due times",
        "sqlite",
        _SQL,
        "AND (due_at, key) > (?, ?)",
        "AND due_at > ? AND ? IS NOT NULL",
        f"{_ON_SQLITE}::test_due_listing_goes_on_over_equal_times",
    ),
    Bug(
        7,
        "the cursor skips equal due times",
        "s3",
        _S3_SNAPSHOT,
        "first = (to_micros(after.due_at), after.key) if after else None",
        'first = (to_micros(after.due_at) + 1, "") if after else None',
        f"{_ON_S3}::test_due_listing_goes_on_over_equal_times",
    ),
    Bug(
        7,
        "the cursor skips equal due times",
        "dynamodb",
        _DYNAMODB,
        "due_text(after.due_at, after.key) if after",
        "end_of_due(after.due_at) if after",
        f"{_ON_DYNAMODB}::test_due_listing_goes_on_over_equal_times",
    ),
    Bug(
        8,
        "one result for all of a call",
        "memory",
        _MEMORY,
        "return [_apply(records, write, stamp) for write, stamp in writes]",
        "return [any([_apply(records, write, stamp) for write, stamp in writes])] * len(writes)",
        f"{_ON_MEMORY}::test_bulk_has_a_result_each_in_order",
    ),
    Bug(
        8,
        "one result for all of a call",
        "sqlite",
        _SQLITE,
        "return [write.key in removed or stored.get(write.key) == stamp for write, stamp in writes]",
        "return [n_done + len(removed) > 0] * len(writes)",
        f"{_ON_SQLITE}::test_bulk_has_a_result_each_in_order",
    ),
    Bug(
        8,
        "one result for all of a call",
        "s3",
        _S3,
        "                done[at] = is_done\n        return done",
        "                done[at] = is_done\n        return [any(done)] * len(done)",
        f"{_ON_S3}::test_bulk_has_a_result_each_in_order",
    ),
    Bug(
        8,
        "one result for all of a call",
        "dynamodb",
        _DYNAMODB,
        "items[number]), range(len(writes))",
        "items[number]), range(len(writes))) and [True] * (len(writes)",
        f"{_ON_DYNAMODB}::test_bulk_has_a_result_each_in_order",
    ),
    Bug(
        9,
        "FAILED is missing from what is incomplete",
        "all",
        "resources/document_state/document_state_store.py",
        "and label.status(phase) not in SETTLED",
        'and label.status(phase) not in {*SETTLED, "FAILED"}',
        f"{_STATE_TESTS}::test_incomplete_extraction",
    ),
    Bug(
        10,
        "a takeover leaves the old worker valid",
        "all",
        _WORKERS,
        "if found is None or not _lives(_as_found(self._backend.uri, found)):",
        "if found is None:",
        f"{_WORKER_TESTS}::TestWorker::test_declared_dead_every_later_call_fails",
        seen_in_histories=True,
    ),
    Bug(
        10,
        "a takeover leaves the old worker's token valid",
        "all",
        "resources/document_state/transitions.py",
        "token = doc.token + 1",
        "token = max(doc.token, 1)",
        f"{_STATE_TESTS}::test_released_by_anyone_can_be_claimed",
        seen_in_histories=True,
    ),
    Bug(
        11,
        "what the dead had reserved is just released",
        "all",
        "resources/document_state/spend_gate.py",
        "await self._ledger.settle(reservation_id, spent_of(log))",
        "await self._ledger.settle(reservation_id, {})",
        "tests/spending/test_spend_gate.py::TestSweep::test_dead_worker_is_settled_with_its_calls_in_flight",
    ),
    Bug(
        12,
        "an answer is used before it is journaled",
        "all",
        "ingest_assets/engine/paid_entries.py",
        "kept = await self._journal.record(reservation_id, begun, answers, usage, utc_now())",
        "kept = await self._journal.find([])",
        "tests/engine/test_paid_entries.py::TestPaidEntries::test_no_answer_is_used_before_it_is_journaled",
    ),
)
