"""The journal in a SQLite file: the contract, and what is its own: syncs, damage, kills, its price in time."""

import asyncio
import multiprocessing
import os
import random
import signal
import sqlite3
import threading

import pytest

from resources.artifact_store.artifact_store import ArtifactStoreError
from resources.artifact_store.open_artifact_store import ArtifactStoreUriError
from resources.artifact_store.paid_results.open_journal import open_journal
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.artifact_store.paid_results.sqlite_journal import SqliteJournal
from resources.artifact_store.paid_results.usage import Usage
from tests.paid_results.contract import NOW, JournalContract, answer, call, opened
from tests.paid_results.paying_process import pay_for_ever

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "artifacts" / "artifacts-paid.db"


@pytest.fixture
async def journal(path):
    opened_ = SqliteJournal(path)
    yield opened_
    await opened_.shut()


def execute(path, statement, values=()):
    """Do something to the file around the journal."""
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


class TestSqliteJournal(JournalContract):
    @pytest.fixture
    async def journal(self, path) -> PaidResultJournal:
        """A journal in a new file."""
        opened_ = SqliteJournal(path)
        yield opened_
        await opened_.shut()

    def reopened(self, journal) -> PaidResultJournal:
        """See JournalContract."""
        return SqliteJournal(journal.path)

    async def damage(self, journal, key) -> None:
        """See JournalContract."""
        execute(journal.path, "UPDATE results SET body = x'28b52ffd00' WHERE key = ?", (key,))

    async def damage_log(self, journal, reservation_id) -> None:
        """See JournalContract."""
        execute(journal.path, "UPDATE logs SET body = x'00' WHERE reservation_id = ?", (reservation_id,))


class TestFile:
    async def test_each_commit_is_synced(self, journal):
        """An answer that was paid for outlives a power cut."""
        assert journal._file.connection.execute("PRAGMA synchronous").fetchone() == (2,)

    async def test_stands_beside_the_artifacts(self, tmp_path):
        """The journal of an artifact store is found by the store's own URI."""
        assert open_journal("sqlite:///kept/artifacts.db", tmp_path).path == tmp_path / "kept" / "artifacts-paid.db"
        with pytest.raises(ArtifactStoreUriError, match="redis"):
            open_journal("redis://x", tmp_path)

    async def test_file_that_is_no_database(self, journal, path):
        """Another file in the place is an error that names it, for whoever waits."""
        path.parent.mkdir()
        path.write_bytes(b"not a database" * 100)
        for attempt in (journal.find(["x"]), journal.begin("r", [call()]), journal.logs(), journal.forget("d")):
            with pytest.raises(ArtifactStoreError, match=str(path)):
                await attempt


async def test_many_calls_at_once_share_a_sync(journal):
    """Whatever comes while a commit is under way is in the next one: no call of 64 waits for more than two syncs."""
    await opened(journal, limit=10**9)
    commit = journal._group._commit
    all_wait = threading.Event()
    groups: list[int] = []

    def held(changes):
        groups.append(len(changes))
        assert all_wait.wait(60)
        return commit(changes)

    journal._group._commit = held

    async def at_once(changes) -> None:
        all_wait.clear()
        waiting = [asyncio.create_task(change) for change in changes]
        await asyncio.sleep(0)  # each is queued as soon as its task has begun
        all_wait.set()
        await asyncio.gather(*waiting)

    sent = [call(f"c{number}") for number in range(64)]
    await at_once(journal.begin("r1", [one]) for one in sent)
    assert sum(groups) == 64
    assert len(groups) <= 2
    groups.clear()
    await at_once(journal.record("r1", one, [answer(n)], Usage(1, 1, 1), NOW) for n, one in enumerate(sent))
    assert sum(groups) == 64
    assert len(groups) <= 2


class TestKills:
    async def test_killed_payer_loses_nothing_it_was_told(self, path):
        """Kill a payer at random, ten times: what it was told is durable is there, and each log adds up."""
        for round_ in range(10):
            ours, theirs = SPAWN.Pipe(duplex=False)
            process = SPAWN.Process(target=pay_for_ever, args=(path, f"r{round_}", theirs))
            process.start()
            theirs.close()
            told = [ours.recv()]
            await asyncio.sleep(random.uniform(0, 0.03))
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            try:
                while True:
                    told.append(ours.recv())
            except (EOFError, OSError):
                pass
            journal = SqliteJournal(path)
            log = await journal.seal(f"r{round_}")
            begun = {call_id for what, call_id in told if what == "begun"}
            paid = {call_id for what, call_id in told if what == "paid"}
            assert begun <= set(log.calls)
            assert paid <= {call_id for call_id, each in log.calls.items() if each.usage is not None}
            assert len(log.calls) - len(begun) <= 4
            keys = [f"r{round_}-{call_id}" for call_id, each in log.calls.items() if each.usage is not None]
            assert set(await journal.find(keys)) == set(keys)
            await journal.shut()
