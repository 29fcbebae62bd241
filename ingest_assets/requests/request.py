"""A request: list the sources, select the documents, do them in Dagster runs, say what became of them."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from ingest_assets.components import Components
from ingest_assets.engine.progress import Onlooker
from ingest_assets.requests.asking import Asked, AskedWronglyError, Kind, Where
from ingest_assets.requests.scope import Part, Selected, overlaps_of, pages_of, parts_of, select, select_asked
from ingest_assets.runs.dagster_home import is_missing
from ingest_assets.upkeep.marking import mark
from ingest_assets.upkeep.renewal import begin_anew, refusing_stores
from ingest_assets.upkeep.settling import settle_stores
from resources.clock import utc_now
from resources.counting import counted
from resources.document_source.document_source import SourceError
from resources.document_state.accepted_jobs import JobBegunError
from resources.document_state.impossible_waits import end_impossible_waits
from resources.document_state.ingest_jobs import DocumentResult, IngestJob, Outcome
from resources.document_state.model import Presence, is_partition
from resources.document_state.take_up import Mode
from resources.document_state.transitions import retry_requested
from resources.document_state.workers import WorkerWatch
from resources.records.copying import refuse_unfinished
from resources.store.store import StoreMismatchError
from sensors.discovered import Discovered, total

if TYPE_CHECKING:
    import dagster as dg

SYSTEM_USER = "system"
_POLL_SECONDS = 0.5
_NOT_DONE = frozenset({Outcome.PENDING, Outcome.BUSY})


class RequestOutcome(msgspec.Struct, frozen=True):
    """What became of a request; without a job nothing was requested."""

    selected: Selected
    discovered: Discovered = msgspec.field(default_factory=Discovered)
    source_errors: tuple[str, ...] = ()
    force: bool = False
    asked: Asked | None = None
    job: IngestJob | None = None
    results: tuple[DocumentResult, ...] = ()


class JobInterruptedError(KeyboardInterrupt):
    """Whoever asked for a job stopped it. It has ended, and says who does the rest."""

    def __init__(self, job: IngestJob) -> None:
        super().__init__()
        self.job = job


class Watcher(Onlooker):
    """Told how a request goes on; does nothing by itself."""

    def says(self, message: str) -> None:
        """Something a person wants to know now."""

    def begins(self, n_documents: int) -> None:
        """So many documents are going to be worked on."""

    def does(self, what: str) -> None:
        """What is being done before that, in a few words."""


class Request:
    """One request of the command line.

    Dagster is only loaded when there is something to tell it: a run in which nothing changed costs no more than the
    listing.
    """

    def __init__(self, components: Components, mode: Mode, watcher: Watcher) -> None:
        self._components = components
        self._mode = mode
        self._watcher = watcher

    def ask(self, paths: Sequence[str], asked: Asked) -> RequestOutcome:
        """Do what somebody asks for, of what is known: no source is listed. Must be called as `run` is.

        Raises:
            ExtractorConfigError: the extractor cannot work as it is configured; nothing was looked at.
            StoreMismatchError: stale documents are asked for, and a store holds another embedder's vectors that was not
                named, or of which just a part was asked for; nothing was changed.
            StoreUnavailableError: such a store was named, and documents of it are being worked on; it is as it was.
        """
        self._check_extractor()
        outcome = asyncio.run(self._select_asked(paths, asked))
        return self._do(outcome) if outcome.selected.document_ids else outcome

    def run(self, paths: Sequence[str], *, accept_vanished: bool = False, force: bool = False) -> RequestOutcome:
        """Do all of it. A source that cannot be listed is reported and the others go on.

        Args:
            paths: what of the sources it is about; nothing: all of them.
            accept_vanished: believe a listing that lost a large share of its documents.
            force: do every document again, whatever its state; also those whose records were lost.

        Must be called in the main thread and outside of any event loop, since it executes Dagster runs.

        Raises:
            ExtractorConfigError: the extractor cannot work as it is configured; nothing was listed.
        """
        self._check_extractor()
        outcome = asyncio.run(self._select(paths, accept_vanished=accept_vanished, force=force))
        return self._do(outcome) if outcome.selected.document_ids else outcome

    def go_on(self, job_id: str) -> RequestOutcome:
        """Do what a forced job had not done when it ended early. Must be called as `run` is.

        Raises:
            UnknownJobError, JobBegunError: there is no such job, or it has not ended.
            AskedWronglyError: it was not forced, so others do the rest of it.
            ExtractorConfigError: the extractor cannot work as it is configured; nothing was looked at.
        """
        self._check_extractor()
        outcome = asyncio.run(self._left_by(job_id))
        return self._do(outcome) if outcome.selected.document_ids else outcome

    def retry(self, document_ids: Sequence[str]) -> RequestOutcome:
        """Do documents again that failed or were skipped. Must be called and raises as `run` does."""
        self._check_extractor()
        asyncio.run(self._recover())
        asyncio.run(self._reset(document_ids))
        return self._do(RequestOutcome(Selected(list(document_ids))))

    def do_named(self, document_ids: Sequence[str], asked: Asked) -> RequestOutcome:
        """Do just these documents, as far as they are what is asked for. Must be called as `run` is."""
        asyncio.run(self._recover())
        return self._do(RequestOutcome(Selected(list(document_ids)), asked=asked))

    def _check_extractor(self) -> None:
        """Tell of a wrong configuration at once, as of any other, and not on the day when there is something to do."""
        self._components.extractor.check()
        self._components.extractor.check_access()

    async def _reset(self, document_ids: Sequence[str]) -> None:
        """Start their attempts again, and make those that were skipped partitions again."""
        known = (await self._components.state.get_many(document_ids)).values()
        docs = [doc for doc in known if doc.presence is Presence.PRESENT]
        self._partitions.add([doc.document_id for doc in docs])
        now = utc_now()
        await self._components.state.set_many([(retry_requested(doc, now), doc) for doc in docs if doc.claim is None])

    async def _select(self, paths: Sequence[str], *, accept_vanished: bool, force: bool) -> RequestOutcome:
        await self._restore_partitions()
        await self._recover()
        parts = await parts_of(self._components, paths, remember=True)
        discovered = Discovered()
        errors: list[str] = []
        if self._mode is not Mode.RETRY_FAILED:
            twice = await overlaps_of(self._components, parts)
            for overlap in twice:
                self._watcher.says(str(overlap))
            discovered, errors = await self._discover(parts, accept_vanished=accept_vanished, force=force)
            discovered.overlaps = twice
        self._watcher.does("Looking for what is due")
        selected = await select(
            self._components,
            parts,
            self._mode,
            utc_now(),
            whole=not paths,
            n_listed=None if errors or self._mode is Mode.RETRY_FAILED else discovered.n_listed,
            fresh=[*discovered.new, *discovered.changed, *discovered.vanished],
            force=force,
        )
        return RequestOutcome(selected, discovered, tuple(errors), force)

    async def _left_by(self, job_id: str) -> RequestOutcome:
        await self._restore_partitions()
        await self._recover()
        jobs = self._components.jobs
        job = await jobs.get(job_id)
        if not job.is_terminal:
            raise JobBegunError(f"Job '{job_id}' has not ended: `ingest jobs {job_id} --follow` shows how it goes on.")
        if not job.force:
            raise AskedWronglyError(f"Job '{job_id}' was not forced. What it had not done is done by {job.left_to}.")
        return RequestOutcome(Selected(await jobs.left_by(job, _NOT_DONE)), force=True)

    async def _select_asked(self, paths: Sequence[str], asked: Asked) -> RequestOutcome:
        components = self._components
        await self._restore_partitions()
        await self._recover()
        for slug in asked.stores:
            await components.target(slug)
        parts = await parts_of(components, paths, remember=False)
        if asked.kind is Kind.STALE:
            anew = await self._to_begin_anew(asked, whole=not paths)
            await mark(components.state, await components.configured())
            for slug in anew:
                self._watcher.says(f"Store '{slug}' holds vectors of another embedder. It is emptied and built anew.")
                await begin_anew(components, slug)
        selected = await select_asked(components, asked, parts, whole=not paths)
        return RequestOutcome(selected, asked=asked)

    async def _to_begin_anew(self, asked: Asked, *, whole: bool) -> list[str]:
        """The stores that hold another embedder's vectors, if they were asked for by name and as a whole."""
        components = self._components
        found = await refusing_stores(components, asked.stores or tuple(await components.targets()))
        if not (asked.stores and whole and asked.where == Where()):
            for slug in found:
                raise StoreMismatchError(
                    slug,
                    "holds vectors of another embedder than it is configured for. Nothing was changed. It can only be "
                    f"built anew by its name and as a whole: `ingest run --store {slug} --stale`.",
                )
        return found

    def _do(self, outcome: RequestOutcome) -> RequestOutcome:
        settings, jobs = self._components.settings, self._components.jobs
        self._components.extractor.check()
        ids = self._components.state.in_parts(outcome.selected.document_ids)
        pages = pages_of(ids, settings.runs.documents_from_command_line)
        job = asyncio.run(self._create_job(outcome, pages))
        self._watcher.begins(len(ids))
        with self._settled_whatever_happens(job):
            self._do_pages(job)
        job = asyncio.run(jobs.settle(job.job_id, utc_now()))
        results = asyncio.run(jobs.results(job.job_id))
        return msgspec.structs.replace(outcome, job=job, results=tuple(results))

    def _do_pages(self, job: IngestJob) -> None:
        from ingest_assets.runs.list_runs import ListRuns

        jobs = self._components.jobs
        runs = ListRuns(self._components.settings, self._dagster, self._watcher)
        for page in range(job.n_pages):
            asyncio.run(jobs.add_run(job.job_id, runs.execute(job, page)))
            if asyncio.run(jobs.get(job.job_id)).n_blocked_batches:
                break  # the ceiling that held a batch back would hold back the next one

    @contextlib.contextmanager
    def _settled_whatever_happens(self, job: IngestJob) -> Iterator[None]:
        """End the job truthfully if its work ends early."""
        try:
            yield
        except BaseException as error:
            why = str(error) or "It was interrupted."
            message = f"{why} What it had not done is done by {job.left_to}."
            settled = asyncio.run(self._components.jobs.settle(job.job_id, utc_now(), message))
            if isinstance(error, KeyboardInterrupt):
                raise JobInterruptedError(settled) from error
            raise

    async def _create_job(self, outcome: RequestOutcome, pages: Sequence[Sequence[str]]) -> IngestJob:
        asked = outcome.asked
        return await self._components.jobs.create(
            pages,
            scope_id=self._components.settings.org_id,
            user_id=SYSTEM_USER,
            mode=self._mode,
            now=utc_now(),
            n_unchanged=outcome.selected.n_unchanged,
            n_busy=outcome.selected.n_busy,
            asked=asked.kind.value if asked else "",
            stores=asked.stores if asked else (),
            force=outcome.force,
        )

    async def _discover(
        self, parts: Sequence[Part], *, accept_vanished: bool, force: bool
    ) -> tuple[Discovered, list[str]]:
        from ingest_assets.discovering import discovery_of

        found: dict[str, Discovered] = {}
        errors: list[str] = []
        for number, part in enumerate(parts):
            self._watcher.does(f"Listing source '{part.source.name}'")
            try:
                found[str(number)] = await discovery_of(self._components, part.source).run(
                    self._partitions, utc_now, prefix=part.prefix, accept_vanished=accept_vanished, reconcile=force
                )
            except SourceError as error:
                errors.append(str(error))
        errors += [discovered.incomplete for discovered in found.values() if discovered.incomplete]
        return total(found), errors

    async def _restore_partitions(self) -> None:
        if is_missing(self._components.settings):
            self._partitions.add(await partitions_of(self._components))

    async def _recover(self) -> None:
        """Take up what dead workers left; in resume mode, wait at most one lease to tell dead from slow."""
        components = self._components
        await refuse_unfinished(components.backend)
        await components.register_stores()
        await settle_stores(components, self._watcher.says)
        await end_impossible_waits(components.state, components.settings.retry_policy, utc_now())
        watch = WorkerWatch(components.backend, components.settings.lease)
        if not await watch.all() and not await components.jobs.orphans() and not await self._has_claims():
            return
        from ingest_assets.runs.recovery import recover

        done = await recover(components, self._dagster, watch)
        if self._mode is Mode.RESUME and (beats := {w.worker_id: w.beat for w in await watch.living()}):
            seconds = components.settings.runs.lease_seconds
            self._watcher.says(
                f"{counted(len(beats), 'worker')} may be dead. Waiting up to {seconds:.0f} s for a heartbeat."
            )
            until = time.monotonic() + seconds + _POLL_SECONDS
            while beats and time.monotonic() < until:
                await asyncio.sleep(_POLL_SECONDS)
                done.add(await recover(components, self._dagster, watch))
                now = {worker.worker_id: worker.beat for worker in await watch.living()}
                beats = {key: beat for key, beat in beats.items() if now.get(key) == beat}
        if done.documents or done.runs:
            self._watcher.says(f"Taken up from dead workers: {counted(done.documents)}, {counted(done.runs, 'run')}.")

    async def _has_claims(self) -> bool:
        return bool(await self._components.state.list_open(lambda label: label.claimed))

    @cached_property
    def _dagster(self) -> "dg.DagsterInstance":
        from ingest_assets.runs.dagster_instance import open_instance

        return open_instance(self._components.settings)

    @cached_property
    def _partitions(self) -> "LazyPartitions":
        return LazyPartitions(lambda: self._dagster)


async def partitions_of(components: Components) -> list[str]:
    """The documents that are to be partitions, for a Dagster folder that is new although the records are not."""
    return await components.state.list_ids(lambda label: is_partition(label.presence, label.extraction))


class LazyPartitions:
    """Dagster's partitions, loaded when there is one to add."""

    def __init__(self, instance: "Callable[[], dg.DagsterInstance]") -> None:
        self._instance = instance

    def add(self, document_ids: Sequence[str]) -> None:
        """See Partitions."""
        if not document_ids:
            return
        from ingest_assets.partitions import DagsterPartitions

        DagsterPartitions(self._instance()).add(document_ids)
