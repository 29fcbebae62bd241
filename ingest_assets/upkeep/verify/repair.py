"""`ingest verify --repair`: mends what differs, and looks once more at what it mended."""

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ingest_assets.components import Components
from ingest_assets.requests.asking import Asked, Kind
from ingest_assets.requests.request import Request, Watcher
from ingest_assets.runs.dagster_home import is_missing
from ingest_assets.targets import Target
from ingest_assets.upkeep.verify.difference import DAGSTER, Difference, Differences, What
from ingest_assets.upkeep.verify.examining import ids_of
from ingest_assets.upkeep.verify.lost_record_repair import LostRecordRepair
from ingest_assets.upkeep.verify.mended import Mended
from ingest_assets.upkeep.verify.rebuilding import Rebuilder
from ingest_assets.upkeep.verify.record_repair import RecordRepair
from ingest_assets.upkeep.verify.taking_out import TakingOut
from ingest_assets.upkeep.verify.verification import Verification
from resources.clock import utc_now
from resources.document_state.take_up import Mode
from resources.document_state.workers import Heartbeat, Worker

if TYPE_CHECKING:
    import dagster as dg

_IN_STORES = (What.NOT_HELD, What.CONTENT_DIFFERS, What.ROWS_DAMAGED)


class Verified(msgspec.Struct):
    """What came of it.

    Attributes:
        found: every difference there was.
        remaining: those that are still there; all of them, if nothing was to be mended.
        problems: why something could not be mended, by document id; "" for what concerns several.
        n_documents: how many documents were looked at that are not gone.
        n_busy: how many were in a worker's hands, and left out.
        n_unchecked: how many records are from before checksums.
        unreadable: stores that could not be read, each with what it said; nothing is mended then, since what such a
            store holds may be all that is left of a document.
    """

    found: list[Difference]
    remaining: list[Difference]
    problems: dict[str, str]
    n_documents: int
    n_busy: int
    n_unchecked: int
    unreadable: dict[str, str]


class Repair:
    """Compares, and mends if asked to. In the main thread and outside of any event loop only: mending executes runs."""

    def __init__(
        self,
        components: Components,
        targets: Mapping[str, Target],
        instance: "dg.DagsterInstance | None",
        watcher: Watcher | None = None,
    ) -> None:
        """Take what is needed; `watcher` is told of the runs that mend, for the others see `Verification`."""
        self._components = components
        self._link_parts = {slug: target.parts for slug, target in targets.items()}
        self._stores = {slug: target.store for slug, target in targets.items()}
        self._watcher = watcher or Watcher()
        self._instance = instance
        self._verification = Verification(components, targets, instance)

    def run(
        self,
        chosen: Sequence[str] | None,
        *,
        repair: bool,
        may_extract: bool = False,
        advance: Callable[[int], None] = lambda _: None,
    ) -> Verified:
        """Look at all documents, or at the chosen ones.

        Args:
            chosen: ids; None: everything.
            repair: mend what differs, without extracting anything.
            may_extract: with `repair`: documents whose artifact is lost are extracted again, which may cost.
            advance: told how many more documents have been looked at.
        """
        looked = asyncio.run(self._verification.look(chosen, advance))
        result = Verified(
            looked.found, looked.found, {}, looked.n_documents, looked.n_busy, looked.n_unchecked, looked.unreadable
        )
        if repair and looked.found and not looked.unreadable:
            result.problems = self._repair(looked, may_extract=may_extract)
            result.remaining = asyncio.run(self._verification.look(ids_of(looked.found))).found
        return result

    def _repair(self, looked: Differences, *, may_extract: bool) -> dict[str, str]:
        mended, owed = asyncio.run(self._mend_records(looked.found, may_extract=may_extract))
        left = asyncio.run(self._verification.examiner.some(ids_of(looked.found)))
        # A run that is to write these would extract them first.
        lost = ids_of([difference for difference in left.found if difference.what is What.ARTIFACT_LOST])
        for slug in self._stores:
            ids = dict.fromkeys([*left.of(*_IN_STORES).get(slug, ()), *owed.get(slug, ())])
            self._do([key for key in ids if key not in lost], Asked(Kind.REWRITE, (slug,)))
        if may_extract:
            self._do(lost, Asked(Kind.REWRITE))
        if self._instance is not None:
            self._mend_partitions(self._instance, ids_of(looked.found))
        return mended.problems

    async def _mend_records(
        self, found: Sequence[Difference], *, may_extract: bool
    ) -> tuple[Mended, Mapping[str, Sequence[str]]]:
        components = self._components
        limit, lease = components.settings.limits.file_bytes, components.settings.lease
        # A worker while artifacts are kept that no record refers to yet: nobody takes them for garbage.
        worker = await Worker.register(components.backend, f"repair-{uuid.uuid4()}", utc_now(), lease)
        sources = await components.sources()
        rebuilder = Rebuilder(sources, components.artifacts, self._link_parts, limit, may_extract=may_extract)
        state, examiner = components.state, self._verification.examiner
        taking_out = TakingOut(state, self._stores)
        now, mended = utc_now(), Mended()
        with Heartbeat(worker, lease / 3):
            await LostRecordRepair(state, examiner, rebuilder, taking_out, worker).mend(found, now, mended)
            await RecordRepair(state, examiner, taking_out, self._link_parts).mend(found, now, mended)
        await worker.end()
        return mended, await examiner.owed(mended.document_ids)

    def _mend_partitions(self, instance: "dg.DagsterInstance", document_ids: Sequence[str]) -> None:
        from ingest_assets.partitions import DagsterPartitions

        found = Differences(asyncio.run(self._verification.compare_partitions(document_ids)))
        partitions = DagsterPartitions(instance)
        partitions.add(found.of(What.NO_PARTITION).get(DAGSTER, []))
        partitions.remove(found.of(What.PARTITION_UNWANTED, What.UNKNOWN).get(DAGSTER, []))
        self._do(found.of(What.NOT_REPORTED).get(DAGSTER, []), Asked(Kind.REPORT))

    def _do(self, document_ids: Sequence[str], asked: Asked) -> None:
        if document_ids:
            Request(self._components, Mode.RESUME, self._watcher).do_named(document_ids, asked)


def known_to_dagster(components: Components) -> "dg.DagsterInstance | None":
    """Dagster, if it has been used here."""
    if is_missing(components.settings):
        return None
    from ingest_assets.runs.dagster_instance import open_instance

    return open_instance(components.settings)
