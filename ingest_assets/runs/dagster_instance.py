"""The Dagster instance of a project, opened for this process."""

import os
import shutil
from pathlib import Path

import dagster as dg
from dagster._core.instance.ref import InstanceRef

from ingest_assets.dagster_databases import told_of_its_databases
from ingest_assets.runs.dagster_home import MAKING, dagster_home
from ingest_assets.settings import Settings
from resources.file_lock import exclusive_lock

# A run that this process executes itself would have four more processes mirror its output to the terminal that it has.
_NO_COMPUTE_LOGS = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}
# Runs that start in the same moment open it in turn: sixteen on two busy processors took over a minute.
_LONGEST_OPENING = 600.0
_DATABASES = ("history", "schedules")
# Dagster then stores the events of its own that come in batches (a backfill's plans) in batches.
BATCH_SIZE = ("DAGSTER_EVENT_BATCH_SIZE", "1000")


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """The Dagster instance whose runs and partitions the UI shows.

    Raises:
        DagsterDatabaseError: its databases cannot be used.
        TimeoutError: other processes were opening it all the time.
    """
    os.environ.setdefault(*BATCH_SIZE)
    # Paths in dagster.yaml are relative to it.
    home = dagster_home(settings)
    os.environ["DAGSTER_HOME"] = str(home)
    # Two processes that make Dagster's databases at once leave them with two schema versions each, for good.
    try:
        with told_of_its_databases(), exclusive_lock(home / "opening.lock", _LONGEST_OPENING):
            return _open_whole(home)
    except TimeoutError as error:
        minutes = _LONGEST_OPENING / 60
        raise TimeoutError(
            f"Dagster's folder {home} could not be opened: other processes were opening it for {minutes:.0f} minutes. "
            "Start fewer at once, or try again."
        ) from error


def _open_whole(home: Path) -> dg.DagsterInstance:
    """Open the instance; databases that somebody was killed over while making them are made anew.

    Dagster makes its databases table by table, and takes a file that is there for a whole one: one whose making was
    killed, or found the disk full, would lack its tables for good. Nothing is kept in them before they are whole.
    """
    making = home / MAKING
    if making.exists():
        for name in _DATABASES:
            shutil.rmtree(home / name, ignore_errors=True)
    if not any((home / name).exists() for name in _DATABASES):
        making.touch()
    instance = dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=_NO_COMPUTE_LOGS))
    making.unlink(missing_ok=True)
    return instance
