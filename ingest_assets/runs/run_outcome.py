"""How a run ends: what its page says, and whether it counts as failed."""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import dagster as dg

from ingest_assets import asset_keys
from ingest_assets.runs.dagster_reporter import DagsterReporter
from ingest_assets.runs.run_tags import KIND_TAG, RESULT_TAG, STATUS_TAG
from resources.document_state.ingest_jobs import DocumentResult, Outcome
from resources.document_state.run_tally import RunOutcome

CEILING_CHECK = "within_spend_ceiling"
_ROWS = 200


def log_outcome(log: logging.Logger, reporter: DagsterReporter) -> None:
    """One line of counts, and one for each failed document."""
    log.info("Documents: %s.", _counts(reporter))
    if reporter.progress.refusal:
        log.warning("Held back. %s", reporter.progress.refusal)
    if not reporter.outcomes:
        log.info("What failed for good is not due. To try it anyway: `ingest retry`, or materialize its partition.")
    for failure in reporter.failures[:_ROWS]:
        log.warning("%s: %s. %s", failure.filename, failure.reason, failure.error)


def tag_run(instance: dg.DagsterInstance, run: dg.DagsterRun, kind: str, reporter: DagsterReporter) -> None:
    """Make the list of runs say what each was about and what became of it."""
    tags = {KIND_TAG: kind, RESULT_TAG: _counts(reporter), STATUS_TAG: outcome_of(reporter).value}
    instance.add_run_tags(run.run_id, tags)


def check_ceiling(instance: dg.DagsterInstance, reporter: DagsterReporter) -> None:
    """Make the check `within_spend_ceiling` say whether a batch of this run was held back, if any had to be paid."""
    if reporter.progress.n_estimates:
        refusal = reporter.progress.refusal
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=asset_keys.EXTRACTED,
                check_name=CEILING_CHECK,
                passed=not refusal,
                metadata={"why": refusal} if refusal else {},
                severity=dg.AssetCheckSeverity.WARN,
            )
        )


def raise_if_failed(reporter: DagsterReporter, fail_run_on: Literal["any", "all", "none"]) -> None:
    """Fail the run, after every document was attempted, as the configuration says.

    Raises:
        dagster.Failure: with the failed documents as a table.
    """
    n_failed = reporter.outcomes[Outcome.FAILED]
    n_attempted = sum(reporter.outcomes.values()) - reporter.outcomes[Outcome.BUSY]
    n_done = reporter.outcomes[Outcome.SUCCEEDED] + reporter.outcomes[Outcome.REMOVED]
    if not n_failed or fail_run_on == "none" or (fail_run_on == "all" and n_done):
        return
    raise dg.Failure(
        description=f"{n_failed} of {n_attempted} documents failed ({_reasons(reporter.failures)})."
        + (" The others are done." if n_failed < n_attempted else ""),
        metadata={"failed documents": dg.MetadataValue.md(_table(reporter.failures)), **reporter.page_link},
        allow_retries=False,
    )


def outcome_of(reporter: DagsterReporter) -> RunOutcome:
    """How a run ends that came to its end: in the words of a job that consists of it."""
    if reporter.progress.refusal:
        return RunOutcome.BLOCKED
    if not reporter.outcomes[Outcome.FAILED]:
        return RunOutcome.SUCCEEDED
    done = reporter.outcomes[Outcome.SUCCEEDED] + reporter.outcomes[Outcome.REMOVED]
    return RunOutcome.PARTIAL if done else RunOutcome.FAILED


def _counts(reporter: DagsterReporter) -> str:
    counts = [f"{reporter.outcomes[outcome]} {outcome}" for outcome in Outcome if reporter.outcomes[outcome]]
    return ", ".join(counts) or "nothing was due"


def _reasons(failures: Sequence[DocumentResult]) -> str:
    counts = Counter(failure.reason for failure in failures if failure.reason)
    return ", ".join(f"{n} {reason}" for reason, n in counts.most_common())


def _table(failures: Sequence[DocumentResult]) -> str:
    rows = ["| document | reason | error | what to do |", "|---|---|---|---|"]
    for failure in failures[:_ROWS]:
        what = failure.reason.what_to_do if failure.reason else ""
        rows.append("| " + " | ".join(map(_cell, (failure.filename, failure.reason or "", failure.error, what))) + " |")
    if len(failures) > _ROWS:
        rows.append(f"| … and {len(failures) - _ROWS} more: `ingest status`, `ingest jobs` | | | |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    """Text that cannot leave its cell or become markup."""
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
    return escaped.replace("<", "&lt;").replace("[", "\\[").replace("`", "\\`")
