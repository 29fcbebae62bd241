"""From a request for work to a job: which documents it is about, and one job however often it is repeated."""

import hashlib
import uuid
from collections.abc import Sequence

import msgspec

from ingest_assets.api.choosing import Filter, counted, ids_behind
from ingest_assets.api.job_shapes import WantedJob
from ingest_assets.api.problems import Problem
from ingest_assets.api.read_model.document_index import LabelFilter
from ingest_assets.api.services import Services
from ingest_assets.api.tokens import Caller
from ingest_assets.requests.asking import Asked, Kind
from ingest_assets.requests.scope import pages_of
from resources.clock import utc_now
from resources.document_state.ingest_jobs import IngestJob, UnknownJobError
from resources.document_state.label import DocumentLabel, label_of, read_label
from resources.document_state.process_identity import this_process
from resources.document_state.take_up import Mode

_SHOWN = 20
_ALL = 1 << 62


class Chosen(msgspec.Struct, frozen=True):
    """Documents that are to be worked on, and how many of those asked for another worker has."""

    document_ids: Sequence[str]
    n_busy: int


async def accepted(
    services: Services, caller: Caller, wanted: WantedJob, repeat_key: str
) -> tuple[IngestJob | None, Chosen]:
    """The job for what is wanted, begun if it is new; None if there is nothing to do.

    Args:
        services: state and launcher.
        caller: whose documents they are.
        wanted: what is to be done.
        repeat_key: what the caller gives a repeated request the same of; "" for a new job each time.

    Raises:
        Problem: a document or store is unknown, or the key was used for something else.
    """
    for slug in wanted.stores:
        await services.components.target(slug)
    asked = Asked(Kind(wanted.mode), wanted.stores)
    asked_hash = hashlib.sha256(wanted.model_dump_json().encode()).hexdigest()
    job_id = _job_id(caller, repeat_key)
    if repeat_key and (known := await _known(services, job_id)) is not None:
        return _same(known, asked_hash), Chosen((), 0)
    chosen = await chosen_for(services, caller, wanted)
    if not chosen.document_ids:
        return None, chosen
    new = IngestJob(
        job_id, caller.org_id, caller.user, Mode.INCREMENTAL, utc_now(), this_process(),
        n_busy_before=chosen.n_busy, asked=asked.kind, stores=asked.stores, asked_hash=asked_hash,
    )  # fmt: skip
    return _same(await begun(services, new, chosen.document_ids), asked_hash), chosen


async def begun(services: Services, job: IngestJob, document_ids: Sequence[str]) -> IngestJob:
    """Accept a job over documents and have it done; one of its id that was accepted before is left as it is."""
    ids = services.components.state.in_parts(document_ids)
    pages = pages_of(ids, services.settings.runs.documents_from_command_line)
    accepted_job, is_new = await services.components.accepted_jobs.accept(job, pages)
    if is_new:
        await services.launcher.launch(accepted_job)
    return accepted_job


def _job_id(caller: Caller, repeat_key: str) -> str:
    """The same for the same key of the same user, so that whoever comes first makes the one job there is."""
    if not repeat_key:
        return uuid.uuid4().hex
    return hashlib.sha256(f"{caller.org_id}\0{caller.user}\0{repeat_key}".encode()).hexdigest()[:32]


async def _known(services: Services, job_id: str) -> IngestJob | None:
    try:
        return await services.components.jobs.get(job_id)
    except UnknownJobError:
        return None


def _same(job: IngestJob, asked_hash: str) -> IngestJob:
    """The job that a repeated request made at first."""
    if job.asked_hash != asked_hash:
        raise Problem(
            422,
            "key-used",
            "This Idempotency-Key was used for another request.",
            "Use a new key for a new request, and the same key only to repeat one.",
        )
    return job


async def chosen_for(services: Services, caller: Caller, wanted: WantedJob) -> Chosen:
    """The documents that a job would be about now.

    Raises:
        Problem: a document is unknown, or it is not said which.
    """
    configured = await services.components.configured()
    asked = Asked(Kind(wanted.mode), wanted.stores)

    def is_asked_for(label: DocumentLabel) -> bool:
        return asked.fits(label, configured)

    if (wanted.document_ids is None) is (wanted.filter is None):
        raise Problem(
            422,
            "which-documents",
            "Which documents is not said, or twice.",
            "Send `documentIds` or `filter`, not both.",
        )
    if wanted.document_ids is not None:
        return await _named(services, caller, wanted.document_ids, is_asked_for)
    assert wanted.filter is not None
    return await _filtered(services, caller, wanted.filter, is_asked_for)


async def _named(services: Services, caller: Caller, document_ids: Sequence[str], is_asked_for: LabelFilter) -> Chosen:
    ids = list(dict.fromkeys(document_ids))
    docs = await services.components.state.get_many(ids)
    unknown = [key for key in ids if key not in docs or docs[key].org_id != caller.org_id]
    if unknown:
        shown = ", ".join(f"'{key}'" for key in unknown[:_SHOWN])
        raise Problem(
            404,
            "no-such-document",
            f"{len(unknown):,} of the documents {'is' if len(unknown) == 1 else 'are'} not there: {shown}.",
            "Nothing was begun. GET /api/documents lists those there are.",
        )
    fitting = [key for key in ids if is_asked_for(read_label(label_of(docs[key])))]
    free = [key for key in fitting if docs[key].claim is None]
    return Chosen(free, len(fitting) - len(free))


async def _filtered(services: Services, caller: Caller, chosen: Filter, is_asked_for: LabelFilter) -> Chosen:
    def is_free(label: DocumentLabel) -> bool:
        return not label.claimed and chosen.passes(label) and is_asked_for(label)

    def is_busy(label: DocumentLabel) -> bool:
        return label.claimed and chosen.passes(label) and is_asked_for(label)

    ids = await ids_behind(services, caller, is_free, chosen.text, "", _ALL)
    n_busy = sum((await counted(services, caller, is_busy, chosen.text)).values())
    return Chosen(ids, n_busy)
