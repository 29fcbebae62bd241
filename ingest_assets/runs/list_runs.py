"""List runs: a page of a job's documents as one Dagster run, executed in this process."""

import dagster as dg
from dagster_shared.error import SerializableErrorInfo

from ingest_assets import asset_keys
from ingest_assets.dagster_databases import fault_of_its_databases, told_of_its_databases
from ingest_assets.definitions import build_definitions
from ingest_assets.engine.progress import Onlooker
from ingest_assets.jobs import INGEST
from ingest_assets.runs.process_tag import process_tag
from ingest_assets.runs.run_error import RunError
from ingest_assets.runs.run_tags import JOB_TAG, KIND_TAG, PAGE_TAG
from ingest_assets.runs.stopping import heed_sigterm
from ingest_assets.settings import Settings
from resources.document_state.ingest_jobs import IngestJob

# Dagster prints every event of a run to the terminal unless told otherwise; they are in its log either way.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class ListRuns:
    """Executes the runs of a job. They show in the Dagster UI like any other."""

    def __init__(self, settings: Settings, instance: dg.DagsterInstance, onlooker: Onlooker) -> None:
        self._instance = instance
        self._public_url = settings.api.public_url
        self._job = build_definitions(settings, onlooker).resolve_job_def(INGEST)

    def execute(self, job: IngestJob, page: int) -> str:
        """Do one page of a job's documents, or what of them is asked for; gives the run's id.

        A run that failed has told which documents and why.
        Must be called in the main thread, where Dagster handles interrupts, and outside of any event loop.

        Raises:
            RunError: the run ended for another reason than failed documents.
            DagsterDatabaseError: Dagster could not keep what it says of the run.
            KeyboardInterrupt: it was interrupted.
        """
        tags = {
            JOB_TAG: job.job_id,
            KIND_TAG: "list",
            "ingest/mode": job.mode.value,
            "ingest/documents": str(job.n_listed),
            **process_tag(),
        }
        if self._public_url:
            tags[PAGE_TAG] = f"{self._public_url}/jobs/{job.job_id}"
        what: dict[str, object] = {"job_id": job.job_id, "job_page": page, "mode": job.mode.name, "force": job.force}
        if job.asked:
            what |= {"asked": job.asked, "stores": list(job.stores)}
            tags["ingest/asked"] = " ".join([job.asked, *job.stores])
        config = {"ops": {asset_keys.STEP: {"config": what}}, **_QUIET}
        with told_of_its_databases():
            try:
                result = self._job.execute_in_process(
                    run_config=config, instance=self._instance, tags=tags, raise_on_error=False
                )
            finally:
                heed_sigterm()  # Dagster has left its own handler there
            run = self._instance.get_run_by_id(result.run_id)
        if run is not None and run.status is dg.DagsterRunStatus.CANCELED:
            raise KeyboardInterrupt  # Dagster took the signal and ended the run; who asked for it must hear of it too
        for failure in result.filter_events(lambda event: event.is_step_failure):
            if failure.step_failure_data.user_failure_data is None and failure.step_failure_data.error is not None:
                said = _said(failure.step_failure_data.error)
                raise fault_of_its_databases(said) or RunError(f"Run {result.run_id} ended early: {said}")
        return result.run_id


def _said(error: SerializableErrorInfo) -> str:
    """What was said by whoever raised it: Dagster's own error around it says only where."""
    while error.cause is not None and error.message.startswith("dagster."):
        error = error.cause
    said = error.message.strip()
    # "module.Class: sentence"; a class of ours says nothing to a person, and a fault's own name does.
    name, found, sentence = said.partition(": ")
    return sentence if found and name.startswith(("resources.", "sensors.", "ingest_assets.")) else said
