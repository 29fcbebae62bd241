"""The commands that do, or say what would be done: run, plan, retry."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ingest_assets.cli.inspect import find_document, unless_configured
from ingest_assets.cli.jobs import job_fields
from ingest_assets.cli.output import Exit, complain, print_json, print_table, say
from ingest_assets.cli.watching import SentenceWatcher, progress, sentences
from ingest_assets.components import Components, UnknownNameError
from ingest_assets.requests.asking import Asked, AskedWronglyError
from ingest_assets.requests.carrying_out import CarryingOut
from ingest_assets.requests.request import Request, RequestOutcome
from ingest_assets.upkeep.staleness import WHY_GONE
from resources.counting import counted
from resources.document_source.document_ids import shown_key
from resources.document_state.ingest_jobs import DocumentResult, IngestJob, JobStatus, Outcome
from resources.document_state.model import GONE
from resources.document_state.take_up import Mode
from sensors.discovered import describe

_SHOWN = 20


def run(
    components: Components,
    paths: Sequence[str],
    mode: Mode,
    *,
    accept_vanished: bool,
    force: bool,
    as_json: bool,
) -> int:
    """See `ingest run`."""
    with progress(quiet=as_json) as watcher:
        outcome = Request(components, mode, watcher).run(paths, accept_vanished=accept_vanished, force=force)
    if not as_json and outcome.source_errors and (hint := unless_configured(components.settings)):
        complain(hint.strip())
    return told(outcome, as_json=as_json)


def ask(components: Components, paths: Sequence[str], mode: Mode, asked: Asked, *, as_json: bool) -> int:
    """See `ingest run --stale`, `--failed`, `--missing`, `--where`."""
    with progress(quiet=as_json) as watcher:
        outcome = Request(components, mode, watcher).ask(paths, asked)
    if outcome.job is not None or as_json:
        return told(outcome, as_json=as_json)
    say("Nothing to do: no document is asked for by this.")
    if outcome.selected.n_busy:
        say(f"Being worked on by another process: {counted(outcome.selected.n_busy)}.")
    return _exit_code(outcome)


def go_on(components: Components, job_id: str, *, as_json: bool) -> int:
    """See `ingest run --continue`."""
    with progress(quiet=as_json) as watcher:
        outcome = Request(components, Mode.INCREMENTAL, watcher).go_on(job_id)
    if outcome.job is not None or as_json:
        return told(outcome, as_json=as_json)
    say(f"Nothing to do: job {job_id} has done all of it.")
    return Exit.DONE


def carry_out(components: Components, job_id: str) -> int:
    """Do a job that was accepted by another process; what it says goes into its log."""
    with sentences() as telling:
        job = CarryingOut(components, Mode.INCREMENTAL, SentenceWatcher(telling)).carry_out(job_id)
    return Exit.DONE if job.status is JobStatus.SUCCEEDED else Exit.FAILED


def told(outcome: RequestOutcome, *, as_json: bool) -> int:
    """Tell a person, or a program, what a run did; gives the code the command ends with."""
    if as_json:
        print_json(_outcome_fields(outcome))
    else:
        print_outcome(outcome)
    return _exit_code(outcome)


def _outcome_fields(outcome: RequestOutcome) -> dict[str, Any]:
    """What a run did, as programs see it."""
    job = outcome.job
    if job is not None:
        counts = job_fields(job)
    else:
        counts = {
            "status": "failed" if outcome.source_errors or outcome.discovered.vanished_refused else "succeeded",
            **dict.fromkeys(("n_requested", "n_succeeded", "n_failed", "n_skipped", "n_pending"), 0),
            "n_unchanged": outcome.selected.n_unchanged,
            "n_busy": outcome.selected.n_busy,
        }
    worked_on = [r for r in outcome.results if r.status is not Outcome.SKIPPED]
    skipped = [r for r in outcome.results if r.status is Outcome.SKIPPED]
    return {
        **counts,
        "results": worked_on,
        "skipped": [
            {"document_id": r.document_id, "filename": r.filename, "reason": r.reason, "error": r.error}
            for r in skipped
        ],
        "source_errors": list(outcome.source_errors),
        "vanished_refused": outcome.discovered.vanished_refused,
        "left_out": outcome.discovered.left_out,
        "overlaps": outcome.discovered.overlaps,
    }


def print_outcome(outcome: RequestOutcome) -> None:
    """What a run did, for people."""
    for error in outcome.source_errors:
        complain(error)
    if outcome.discovered.vanished_refused:
        complain(describe(outcome.discovered))
    if outcome.discovered.left_out.n:
        say(str(outcome.discovered.left_out))
    job, selected = outcome.job, outcome.selected
    if job is None:
        say(f"Nothing to do: {counted(selected.n_unchanged)} unchanged.")
        if selected.n_busy:
            say(f"Being worked on by another process: {counted(selected.n_busy)}.")
        if selected.n_failed_before:
            say(f"{selected.n_failed_before} failed earlier: `ingest status` says why.")
        return
    counted_by_job = (Outcome.UNCHANGED, Outcome.BUSY, Outcome.PENDING)
    told = [r for r in outcome.results if r.status not in counted_by_job]
    counts = Counter((result.status.value, str(result.reason or "")) for result in told)
    rows = [(status, reason, n) for (status, reason), n in sorted(counts.items())]
    if job.n_unchanged:
        rows.append(("unchanged", "", job.n_unchanged))
    if job.n_busy:
        rows.append(("busy elsewhere", "", job.n_busy))
    if job.n_pending:
        rows.append(("pending", "", job.n_pending))
    print_table(["outcome", "reason", "#documents"], rows)
    _print_failures([result for result in outcome.results if result.reason is not None])
    _print_void_corrections([result for result in outcome.results if result.n_void_corrections])
    say(f"\nJob {job.job_id}: {_ended(job)}")


def _ended(job: IngestJob) -> str:
    """How a job ended; one that had nothing left to do is not called a success of none."""
    if job.n_requested:
        return f"{job.status}. {job.n_succeeded:,} of {counted(job.n_requested)} succeeded."
    if job.n_busy:
        return "nothing was done, since another process is at these documents."
    return "there was nothing to do."


def _print_failures(failures: Sequence[DocumentResult]) -> None:
    if not failures:
        return
    say("")
    rows = [
        (failure.filename, failure.reason or "", failure.error, failure.reason.what_to_do if failure.reason else "")
        for failure in failures[:_SHOWN]
    ]
    print_table(["document", "reason", "error", "what to do"], rows)
    if len(failures) > _SHOWN:
        say(f"… and {len(failures) - _SHOWN} more: `ingest status`, or `ingest jobs` with the job's id.")


def _print_void_corrections(concerned: Sequence[DocumentResult]) -> None:
    if not concerned:
        return
    say("\nCorrections that are void, since the text they correct is not there any more (`ingest chunks show`):")
    print_table(["document", "#void"], [(r.filename, r.n_void_corrections) for r in concerned[:_SHOWN]])
    if len(concerned) > _SHOWN:
        say(f"… and {len(concerned) - _SHOWN} more: --json, or `ingest jobs --json` with the job's id.")


def _exit_code(outcome: RequestOutcome) -> int:
    """What a command ends with that did so."""
    if outcome.job is not None and outcome.job.status is JobStatus.BLOCKED:
        return Exit.BLOCKED
    failed = outcome.job is not None and outcome.job.status is not JobStatus.SUCCEEDED
    doubtful = outcome.source_errors or outcome.discovered.vanished_refused
    return Exit.FAILED if failed or doubtful else Exit.DONE


def retry(components: Components, named: Sequence[str], as_json: bool) -> int:
    """See `ingest retry`.

    Raises:
        UnknownDocumentError: one is not known.
        AskedWronglyError: one is gone, so there is nothing to try.
    """
    with progress(quiet=as_json) as watcher:
        ids = asyncio.run(_ids_to_retry(components, named))
        outcome = Request(components, Mode.RESUME, watcher).retry(ids)
    return told(outcome, as_json=as_json)


async def _ids_to_retry(components: Components, named: Sequence[str]) -> list[str]:
    docs = [await find_document(components, name) for name in named]
    for doc in docs:
        if doc.presence in GONE:
            raise AskedWronglyError(f"{shown_key(doc.source_uri)}: {WHY_GONE[doc.presence]}. Nothing was tried.")
    return list(dict.fromkeys(doc.document_id for doc in docs))


async def ids_of(components: Components, named: Sequence[str]) -> list[str]:
    """The ids of documents as they were named, each once.

    Raises:
        UnknownDocumentError: one is not known.
    """
    return list(dict.fromkeys([(await find_document(components, name)).document_id for name in named]))


async def forget(components: Components, source: str) -> int:
    """See `ingest forget`."""
    if not await components.source_registry.forget(source):
        known = ", ".join(remembered.name for remembered in await components.source_registry.all()) or "none"
        raise UnknownNameError(f"'{source}' is no remembered folder. Remembered: {known}. Others are in ingest.toml.")
    say(f"'{source}' is not listed any more. Its documents stay as they are.")
    return Exit.DONE
