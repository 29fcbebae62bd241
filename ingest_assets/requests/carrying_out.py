"""Does the jobs that another process has accepted, the server of the page: first their errand, then their documents."""

import asyncio

import msgspec

from ingest_assets.discovering import discovery_of
from ingest_assets.requests.asking import Asked, Kind
from ingest_assets.requests.deleting import restore
from ingest_assets.requests.request import Request
from ingest_assets.requests.scope import Part, overlaps_of, pages_of, parts_of, select
from ingest_assets.upkeep.marking import mark_documents
from resources.clock import utc_now
from resources.document_source.document_source import SourceError
from resources.document_state.ingest_jobs import Errand, IngestJob, Listed
from resources.document_state.model import Presence
from sensors.discovered import Discovered, disbelief, total

_WHERE_IT_SAYS_WHY = "`ingest plan` in a terminal says why."


class CarryingOut(Request):
    """One accepted job."""

    def carry_out(self, job_id: str) -> IngestJob:
        """Do a job to its end. Must be called as `run` is.

        Raises:
            UnknownJobError, JobBegunError: there is nothing to do here.
        """
        job = asyncio.run(self._components.accepted_jobs.begin(job_id))
        if job.is_terminal:
            return job  # cancelled before it began
        with self._settled_whatever_happens(job):
            job = asyncio.run(self._prepare(job))
            if job.n_pages:
                self._watcher.begins(job.n_listed)
            self._do_pages(job)
        return asyncio.run(self._components.jobs.settle(job.job_id, utc_now()))

    async def _prepare(self, job: IngestJob) -> IngestJob:
        """Do the errand, and give the job with the documents that it is about then."""
        await self._restore_partitions()
        await self._recover()
        if job.errand in (Errand.LISTING, Errand.INGESTING):
            job = await self._list(job)
        if job.errand is not Errand.LISTING:
            self._components.extractor.check()
        if job.errand is Errand.RESTORING:
            await self._bring_back(job)
        if job.asked and Kind(job.asked).renews_extraction:
            await self._mark(job)
        if job.asked == Kind.STALE:
            await self._to_begin_anew(Asked(Kind.STALE, job.stores), whole=False)
        return job

    async def _list(self, job: IngestJob) -> IngestJob:
        """List the sources of the job's organisation; one that cannot be listed is told, and the others go on."""
        await self._components.jobs.start(job.job_id, utc_now())
        parts = await parts_of(self._components, (), remember=False)
        parts = [part for part in parts if part.source.org_id == job.scope_id]
        found: dict[str, Discovered] = {}
        doubts = []
        for part in parts:
            name = part.source.name
            try:
                found[name] = await discovery_of(self._components, part.source).run(self._partitions, utc_now)
            except SourceError as error:
                self._watcher.says(str(error))  # with its place, which a job does not tell
                doubts.append(f"Source '{name}' could not be listed, so it stays as it was. {_WHERE_IT_SAYS_WHY}")
                continue
            doubts += self._doubts(name, found[name])
        doubts += map(str, await overlaps_of(self._components, parts))
        whole = total(found)
        listed = Listed(
            len(whole.new), len(whole.changed), len(whole.vanished), whole.n_unchanged, whole.n_missing, whole.n_busy,
            tuple(doubts), whole.left_out.n,
        )  # fmt: skip
        job = await self._components.jobs.change(job.job_id, lambda job: msgspec.structs.replace(job, listed=listed))
        return await self._give_what_is_due(job, parts, whole) if job.errand is Errand.INGESTING else job

    def _doubts(self, name: str, found: Discovered) -> list[str]:
        """Why a listing of a source was not believed, or not wholly."""
        doubts = []
        if found.incomplete:
            self._watcher.says(found.incomplete)
            doubts.append(f"Source '{name}' could be listed in part only, so nothing is gone. {_WHERE_IT_SAYS_WHY}")
        if found.vanished_refused:
            doubts.append(f"Source '{name}': {disbelief(found)}")
        return doubts

    async def _give_what_is_due(self, job: IngestJob, parts: list[Part], found: Discovered) -> IngestJob:
        """Let the job be about what `ingest run` would do now, of its organisation."""
        components = self._components
        selected = await select(
            components, parts, self._mode, utc_now(), whole=True, n_listed=found.n_listed,
            fresh=[*found.new, *found.changed, *found.vanished],
        )  # fmt: skip
        docs = await components.state.get_many(selected.document_ids)
        ours = components.state.in_parts([key for key, doc in docs.items() if doc.org_id == job.scope_id])
        pages = pages_of(ours, components.settings.runs.documents_from_command_line)
        return await components.jobs.give(job.job_id, pages, selected.n_unchanged, selected.n_busy)

    async def _mark(self, job: IngestJob) -> None:
        """Mark the job's documents: no work ends what is stale by its mark alone, the configuration being back."""
        components = self._components
        configured = await components.configured()
        for page in range(job.n_pages):
            ids = await components.jobs.documents(job.job_id, page)
            await mark_documents(components.state, ids, configured)

    async def _bring_back(self, job: IngestJob) -> None:
        """Restore what of the job's documents is deleted still; somebody else may have been faster."""
        components = self._components
        for page in range(job.n_pages):
            docs = await components.state.get_many(await components.jobs.documents(job.job_id, page))
            await restore(components, self._partitions, [d for d in docs.values() if d.presence is Presence.ERASED])
