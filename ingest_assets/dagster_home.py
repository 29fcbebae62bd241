"""Dagster's own folder: made from the template when it is first needed."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import dagster as dg
from dagster._core.instance.ref import InstanceRef

from ingest_assets.settings import Settings
from resources.file_lock import exclusive_lock

TEMPLATE = Path(__file__).resolve().parent.parent / "deploy" / "dagster.yaml"
# A run that this process executes itself would have four more processes mirror its output to the terminal that it has.
_NO_COMPUTE_LOGS = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}
_LONGEST_OPENING = 60.0
# Dagster then stores the events of its own that come in batches (a backfill's plans) in batches.
BATCH_SIZE = ("DAGSTER_EVENT_BATCH_SIZE", "1000")


def dagster_home(settings: Settings, environment: Mapping[str, str] = os.environ) -> Path:
    """The folder DAGSTER_HOME names, else `dagster` in the data folder, made if it is not there."""
    named = environment.get("DAGSTER_HOME")
    if named:
        return Path(named)
    home = settings.dagster_home
    config = home / "dagster.yaml"
    if not config.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        settings.data_path.chmod(0o700)
        copy = home / f".dagster.yaml.{os.getpid()}"
        shutil.copyfile(TEMPLATE, copy)
        copy.replace(config)
    return home


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """The Dagster instance whose runs and partitions the UI shows."""
    os.environ.setdefault(*BATCH_SIZE)
    # Paths in dagster.yaml are relative to it.
    home = dagster_home(settings)
    os.environ["DAGSTER_HOME"] = str(home)
    # Two processes that make Dagster's databases at once leave them with two schema versions each, for good.
    with exclusive_lock(home / "opening.lock", _LONGEST_OPENING):
        return dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=_NO_COMPUTE_LOGS))
