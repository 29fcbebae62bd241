"""The command that lists requests, or shows one with what became of its documents: jobs."""

from typing import Any

import msgspec

from ingest_assets.cli.output import Exit, print_json, print_table, say, shown_time
from ingest_assets.components import Components
from resources.clock import utc_now
from resources.document_state.ingest_jobs import IngestJob
from resources.document_state.spend_book import in_dollars

_RECENT = 20


async def jobs(components: Components, job_id: str | None, as_json: bool) -> int:
    """See `ingest jobs`."""
    await components.jobs.settle_orphans(utc_now())
    if job_id is not None:
        job = await components.jobs.get(job_id)
        results = await components.jobs.results(job_id)
        if as_json:
            print_json({**job_fields(job), "results": results})
            return Exit.DONE
        print_table(["what", "value"], _about(job))
        if results:
            say("")
            rows = [(r.filename, r.status, r.reason or "", r.error, r.n_chunks) for r in results]
            print_table(["document", "outcome", "reason", "error", "#chunks"], rows)
        return Exit.DONE
    recent = await components.jobs.recent(_RECENT)
    if as_json:
        print_json([job_fields(job) for job in recent])
    elif not recent:
        say("There is no job yet. `ingest run` makes one when there is something to do.")
    else:
        print_jobs(recent)
    return Exit.DONE


def print_jobs(recent: list[IngestJob]) -> None:
    """Jobs as a table that fits a terminal; ids are never broken, since they are there to be copied."""
    rows = [(j.job_id, shown_time(j.created_at), j.status, j.errand or j.mode, _counts(j)) for j in recent]
    print_table(["job", "created (UTC)", "status", "mode", "documents"], rows, whole="job")


def _about(job: IngestJob) -> list[tuple[str, object]]:
    """A job as people see it: what there is to say of it, and nothing else."""
    rows: list[tuple[str, object]] = [
        ("job", job.job_id),
        ("status", job.status if job.is_terminal or job.stage is None else f"{job.status}, {job.stage}"),
        ("mode", job.errand or job.mode),
        ("asked by", job.user_id),
        ("documents", _counts(job)),
        ("unchanged", f"{job.n_unchanged:,}" if job.n_unchanged else ""),
        ("busy elsewhere", f"{job.n_busy:,}" if job.n_busy else ""),
        ("estimated cost", in_dollars(job.estimated_micro_usd) if job.estimated_micro_usd else ""),
        ("runs", ", ".join(job.run_ids)),
        ("created (UTC)", shown_time(job.created_at)),
        ("began (UTC)", shown_time(job.started_at)),
        ("ended (UTC)", shown_time(job.completed_at)),
        ("why", job.error_message),
    ]
    if (found := job.listed) is not None:
        listed = f"{found.n_new:,} new, {found.n_changed:,} changed, {found.n_vanished:,} vanished"
        rows.insert(3, ("listed", f"{listed}, {found.n_unchanged:,} unchanged"))
        rows += [("doubt", doubt) for doubt in found.doubts]
    return [(name, value) for name, value in rows if str(value)]


def _counts(job: IngestJob) -> str:
    """What became of the documents that were requested; a count of none is left out."""
    parts = {"succeeded": job.n_succeeded, "failed": job.n_failed, "skipped": job.n_skipped, "pending": job.n_pending}
    told = ", ".join(f"{n:,} {name}" for name, n in parts.items() if n)
    return f"{job.n_requested:,}: {told}" if told else f"{job.n_requested:,}"


def job_fields(job: IngestJob) -> dict[str, Any]:
    """A job as programs see it."""
    return {
        "job_id": job.job_id,
        "scope_id": job.scope_id,
        "user_id": job.user_id,
        "mode": job.mode.value,
        "status": job.status.value,
        "errand": job.errand.value,
        "listed": msgspec.to_builtins(job.listed) if job.listed else None,
        "stage": job.stage.value if job.stage else None,
        "n_requested": job.n_requested,
        "n_succeeded": job.n_succeeded,
        "n_failed": job.n_failed,
        "n_skipped": job.n_skipped,
        "n_pending": job.n_pending,
        "n_unchanged": job.n_unchanged,
        "n_busy": job.n_busy,
        "estimated_cost": job.estimated_micro_usd / 1_000_000,
        "run_ids": list(job.run_ids),
        "created_at": job.created_at.isoformat(),
        "started_at": job.started_at.isoformat() if job.started_at else None,
        "completed_at": job.completed_at.isoformat() if job.completed_at else None,
        "error_message": job.error_message,
    }
