"""Clients that read, change, claim, release and take over documents at once, and the history of all they did."""

import asyncio
import contextlib
import itertools
import random
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import msgspec

from resources.document_state import transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import DocStatus
from resources.document_state.workers import KIND as WORKER_KIND
from resources.document_state.workers import LeaseLostError, Worker, WorkerRecord, WorkerWatch
from resources.records.backend import BackendUnavailableError, RecordBackend
from tests.document_state.documents import NOW, new
from tests.linearizability.checker import Operation
from tests.linearizability.models import Change, Seen
from tests.linearizability.unreliable_backend import Overtaking, unreliable

N_CLIENTS = 8
N_DOCUMENTS = 2
N_ROUNDS = 4  # a round is a reading, mostly, and one or two operations that follow from it


class Verdict(WorkerWatch):
    """A watch that looks at one worker and has waited long enough."""

    def __init__(self, backend: RecordBackend, worker_id: str) -> None:
        super().__init__(backend, timedelta(0))
        self._worker_id = worker_id

    async def _all(self):
        found = await self._backend.read(WORKER_KIND, self._worker_id)
        return [(msgspec.json.decode(found.value, type=WorkerRecord), found.stamp)] if found else []


def seen(doc: DocStatus | None) -> Seen | None:
    """What the model knows of a record."""
    return doc and Seen(doc.title, doc.version, doc.claim.worker_id if doc.claim else "", doc.token)


class Client:
    """One client, with its own line to the records, its own random choices and what it has read."""

    def __init__(self, number: int, seed: int, backend: RecordBackend, documents: Sequence[str]) -> None:
        self._number = number
        self._backend = backend
        self._state = RecordDocumentStateStore(backend)
        self._documents = documents
        self._random = random.Random(f"{seed} {number}")
        self._tags = (f"{number}.{i}" for i in itertools.count())
        self._known: dict[str, DocStatus | None] = {}
        self._worker: Worker
        self.history: list[Operation] = []

    async def register(self) -> None:
        """Become a worker, or a new one."""
        registered = None
        while registered is None:
            with contextlib.suppress(BackendUnavailableError, LeaseLostError):
                registered = await Worker.register(self._backend, f"run {self._number}", NOW)
        self._worker = registered

    async def run(self) -> None:
        """Do one thing after the other."""
        for _ in range(N_ROUNDS):
            document_id = self._random.choice(self._documents)
            if document_id not in self._known or self._random.random() < 0.8:
                await self._get(document_id)
            if document_id in self._known:
                await self._act(self._known[document_id], document_id)

    async def _act(self, doc: DocStatus | None, document_id: str) -> None:
        if doc is None:
            await self._set("create", new(document_id), None)
        elif doc.claim is None:
            await self._random.choice([self._change, self._claim, self._claim])(doc)
        elif doc.claim.worker_id == self._worker.worker_id:
            await self._random.choice([self._change, self._release, self._release])(doc)
        else:
            await self._random.choice([self._change, self._take_over, self._take_over])(doc)

    async def _get(self, document_id: str) -> None:
        async def get():
            self._known[document_id] = await self._state.get_status(document_id)
            return seen(self._known[document_id])

        await self._asked("get", document_id, None, get)

    async def _change(self, doc: DocStatus) -> None:
        await self._set("set", transitions.content_changed(doc, "v", 1, doc.due_in, NOW), doc)

    async def _release(self, doc: DocStatus) -> None:
        await self._set("release", transitions.released(doc, NOW), doc)

    async def _claim(self, doc: DocStatus) -> None:
        if not await self._hold(doc.document_id):
            await self.register()
            return
        tag = next(self._tags)
        claimed = transitions.claimed(doc, self._worker.worker_id, self._worker.run_id, NOW, extract=True)

        async def claim():
            [stored] = await self._state.set_many([(msgspec.structs.replace(claimed, title=tag), doc)])
            if stored is not None:
                self._known[doc.document_id] = stored
            return stored is not None

        given = Change(seen(doc), tag, self._worker.worker_id)
        if await self._asked("claim", doc.document_id, given, claim) and self._random.random() < 0.5:
            await self._release(self._known[doc.document_id])

    async def _hold(self, document_id: str) -> bool:
        async def hold():
            try:
                await self._worker.hold([document_id])
            except LeaseLostError:
                return False
            return True

        return await self._asked("hold", self._worker.worker_id, None, hold) or False

    async def _take_over(self, doc: DocStatus) -> None:
        assert doc.claim is not None
        worker_id = doc.claim.worker_id

        async def bury():
            return bool(await Verdict(self._backend, worker_id).bury())

        if await self._asked("bury", worker_id, None, bury):
            await self._get(doc.document_id)
            held = self._known[doc.document_id]
            if held is not None and held.claim is not None and held.claim.worker_id == worker_id:
                await self._set("take over", transitions.released(held, NOW), held)
            if (freed := self._known.get(doc.document_id)) is not None and freed.claim is None:
                await self._claim(freed)

    async def _set(self, name: str, doc: DocStatus, expected: DocStatus | None) -> None:
        tag = next(self._tags)

        async def set_status():
            given = msgspec.structs.replace(doc, title=tag)
            return await self._state.set_status(doc.document_id, given, expected=expected)

        if await self._asked(name, doc.document_id, Change(seen(expected), tag), set_status):
            await self._get(doc.document_id)

    async def _asked(self, name: str, key: str, given: Any, ask: Callable[[], Awaitable[Any]]) -> Any:
        invoked = time.monotonic_ns()
        answer, returned = None, None
        with contextlib.suppress(BackendUnavailableError):
            answer = await ask()
            returned = time.monotonic_ns()
        self.history.append(Operation(self._number, name, key, invoked, returned, given, answer))
        return answer


def record_history(openings: Sequence[RecordBackend], seed: int, threads: ThreadPoolExecutor) -> list[Operation]:
    """Let eight clients loose on a few new documents, each in a thread and loop of its own.

    Args:
        openings: the same records, opened once or several times; clients share them out.
        seed: what is chosen by chance follows from it; who is faster does not.
        threads: at least as many as there are clients.
    """
    documents = [f"{seed}-{i}" for i in range(N_DOCUMENTS)]
    overtaking = Overtaking()
    together = threading.Barrier(N_CLIENTS, timeout=60)

    def one(number: int) -> list[Operation]:
        backend = openings[number % len(openings)]
        client = Client(number, seed, unreliable(backend, f"{seed} {number}", overtaking), documents)

        async def live():
            await client.register()
            together.wait()
            await client.run()

        asyncio.run(live())
        return client.history

    return [operation for history in threads.map(one, range(N_CLIENTS)) for operation in history]
