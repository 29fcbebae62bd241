"""Dagster's own folder: made from the template when it is first needed."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ingest_assets.settings import Settings

TEMPLATE = Path(__file__).resolve().parents[2] / "deploy" / "dagster.yaml"
MAKING = "making"  # stands in the folder while Dagster makes its databases there


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


def is_missing(settings: Settings) -> bool:
    """Whether there is no Dagster folder yet, or none whose databases are whole."""
    home = Path(os.environ.get("DAGSTER_HOME") or settings.dagster_home)
    return not (home / "history").exists() or (home / MAKING).exists()
