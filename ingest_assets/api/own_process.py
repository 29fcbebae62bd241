"""Processes that the server starts: our own command line, under the server's own configuration."""

import os
import sys
from pathlib import Path
from typing import BinaryIO

from ingest_assets.api.tokens import TOKEN_VARIABLE
from ingest_assets.settings import Settings


def command(*arguments: str) -> list[str]:
    """A command of `ingest`, whatever is on the path and in the working directory."""
    return [sys.executable, "-P", "-m", "ingest_assets.cli", *arguments]


def environment(settings: Settings) -> dict[str, str]:
    """The server's own environment without its token; the configuration is its own, whatever the working directory."""
    found: Path | None = settings.config_file
    configuration = {"INGEST_CONFIG": str(found)} if found else {}
    return {**os.environ, **configuration, TOKEN_VARIABLE: ""}


def open_log(settings: Settings, name: str) -> BinaryIO:
    """A log file in the data folder, for its owner's eyes, to be written behind what is in it."""
    log = settings.data_path / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
