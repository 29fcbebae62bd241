"""A process that pays for calls until it is killed; spawned, so it must be importable."""

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from resources.artifact_store.paid_results.call_log import CallLog
from resources.artifact_store.paid_results.paid_result import Answer
from resources.artifact_store.paid_results.sqlite_journal import SqliteJournal
from resources.artifact_store.paid_results.usage import Usage
from tests.paid_results.contract import NOW, call

AT_ONCE = 4


def pay_for_ever(path: Path, reservation_id: str, to_parent: Connection) -> None:
    """Begin and record calls, four at once; tell of each step after the journal did it."""

    async def one(journal: SqliteJournal, first: int) -> None:
        number = first
        while True:
            sent = call(f"c{number}", 1)
            await journal.begin(reservation_id, [sent])
            to_parent.send(("begun", sent.call_id))
            answers = [Answer(f"{reservation_id}-{sent.call_id}", b"answer" * 50, ("doc",))]
            await journal.record(reservation_id, sent, answers, Usage(1, 1, 1), NOW)
            to_parent.send(("paid", sent.call_id))
            number += AT_ONCE

    async def go() -> None:
        journal = SqliteJournal(path)
        await journal.open_log(CallLog(reservation_id, "worker", 10**9))
        await asyncio.gather(*(one(journal, first) for first in range(AT_ONCE)))

    asyncio.run(go())
