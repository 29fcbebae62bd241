"""How many runs ended how, and how long they were at each stage: for monitoring, true whichever process asks.

One record, to which each run is added once, when it ends or when what it left is taken up. While it goes on, its
seconds are in its worker's record, which is written by the heartbeat anyway.
"""

import logging
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from resources.document_state.workers import WorkerRecord
from resources.records.backend import BackendCorruptError, RecordBackend
from resources.records.decoding import decoded
from resources.records.record import Record, Write

_logger = logging.getLogger(__name__)

KIND = "run_tally"
_KEY = "all"
# Whoever adds a run again does so soon: after a lost reply, or as one of several sweeps that find it at once.
_REMEMBERED = 200


class RunOutcome(StrEnum):
    """How a run ended."""

    SUCCEEDED = "succeeded"  # every document succeeded or was skipped, or there was nothing to do
    PARTIAL = "partial"  # some failed
    FAILED = "failed"  # none succeeded, or it could not go on
    BLOCKED = "blocked"  # held back by the spend gate
    INTERRUPTED = "interrupted"  # cancelled, or by Ctrl-C
    DIED = "died"  # its process did


class Tally(msgspec.Struct, frozen=True):
    """Runs that ended, by outcome; the seconds they were at each stage; the ids of the last of them."""

    runs: dict[str, int] = {}
    seconds: dict[str, float] = {}
    counted: tuple[str, ...] = ()

    def with_run(self, run_id: str, outcome: RunOutcome, seconds: Mapping[str, float]) -> "Tally":
        """The tally with one more run; itself if that is in it."""
        if run_id in self.counted:
            return self
        return Tally(
            {**self.runs, outcome.value: self.runs.get(outcome, 0) + 1},
            _added(self.seconds, seconds),
            (*self.counted, run_id)[-_REMEMBERED:],
        )

    def seconds_with(self, workers: Sequence[WorkerRecord]) -> dict[str, float]:
        """Its seconds and those of runs that go on, up to their last heartbeat; the workers were read before it."""
        total = self.seconds
        for worker in workers:
            if worker.run_id not in self.counted:
                total = _added(total, worker.stage_seconds)
        return total


class RunTally:
    """The record of a backend."""

    def __init__(self, backend: RecordBackend) -> None:
        self._backend = backend

    async def read(self) -> Tally:
        """All runs that ended.

        Raises:
            BackendCorruptError: the record is damaged.
        """
        return self._tally(await self._backend.read(KIND, _KEY))

    async def add(self, run_id: str, outcome: RunOutcome, seconds: Mapping[str, float]) -> None:
        """Count a run that ended. Safe to repeat: who is first says how.

        A damaged tally is left as it is, and said so: no run ends otherwise for what only monitoring asks for.
        """
        while True:
            record = await self._backend.read(KIND, _KEY)
            try:
                before = self._tally(record)
            except BackendCorruptError as error:
                _logger.warning("Run %s is not counted: %s", run_id, error)
                return
            after = before.with_run(run_id, outcome, seconds)
            if after is before:
                return
            write = Write(_KEY, msgspec.json.encode(after), record.stamp if record else None)
            if (await self._backend.compare_and_set(KIND, [write]))[0].written:
                return

    def _tally(self, record: Record | None) -> Tally:
        return Tally() if record is None else decoded(self._backend.uri, KIND, record, Tally)


def _added(total: Mapping[str, float], more: Mapping[str, float]) -> dict[str, float]:
    return {stage: total.get(stage, 0.0) + more.get(stage, 0.0) for stage in {**total, **more}}
