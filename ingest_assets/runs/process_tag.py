"""Which process executes a run: a tag on runs that the command line executes itself.

Dagster watches only runs it launched. A run whose own process was killed would stay STARTED for ever.
"""

from collections.abc import Iterator

import dagster as dg
import msgspec

from resources.document_state.process_identity import ProcessIdentity, is_certainly_dead, this_process

TAG = "ingest/process"


def process_tag() -> dict[str, str]:
    """The tag of runs this process executes."""
    return {TAG: msgspec.json.encode(this_process()).decode()}


def runs_of_dead_processes(instance: dg.DagsterInstance) -> Iterator[dg.DagsterRun]:
    """Unfinished runs whose process was on this machine and is gone.

    A run that the UI executes again inherits the tag of the first, which says nothing of it.
    """
    unfinished = [
        dg.DagsterRunStatus.NOT_STARTED,
        dg.DagsterRunStatus.STARTING,
        dg.DagsterRunStatus.STARTED,
        dg.DagsterRunStatus.CANCELING,
    ]
    for run in instance.get_runs(dg.RunsFilter(statuses=unfinished)):
        tag = run.tags.get(TAG) if run.parent_run_id is None else None
        if tag and is_certainly_dead(msgspec.json.decode(tag, type=ProcessIdentity)):
            yield run
