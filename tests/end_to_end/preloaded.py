"""Runs `ingest` in processes that need not load it first: forks of one that has loaded it, and does nothing else.

Loading is most of what a command on a few documents costs, and the tests run some thousand of them. `Project.start`
starts the installed program itself.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.end_to_end.dying import Point

_READY = b"r"
_MOST_BYTES = 1_000_000
# Not `definitions`, which reads ingest.toml.
_MODULES = (
    "alembic.command",
    "anyio._backends._asyncio",
    "anyio.to_thread",
    "dagster._core.definitions.external_asset",
    "dagster._core.definitions.repository_definition.repository_data_builder",
    "dagster._core.execution.execute_in_process",
    "dagster._core.execution.plan.active",
    "dagster._core.executor.in_process",
    "dagster._core.instance.factory",
    "dagster._core.instance.runs.run_domain",
    "dagster._core.secrets.env_file",
    "dagster._core.storage.legacy_storage",
    "dagster._core.storage.migration.utils",
    "dagster._core.storage.noop_compute_log_manager",
    "dagster._core.storage.root",
    "dagster._core.storage.runs",
    "dagster._core.storage.schedules",
    "dagster._core.workspace.context",
    "dagster._daemon.daemon",
    "ingest_assets.assets",
    "ingest_assets.checks",
    "ingest_assets.cli.app",
    "ingest_assets.cli.output",
    "ingest_assets.event_log.event_log_storage",
    "ingest_assets.jobs",
    "ingest_assets.parsing.pool",
    "ingest_assets.parsing.sandbox",
    "ingest_assets.requests.carrying_out",
    "ingest_assets.requests.forecast",
    "ingest_assets.runs.dagster_instance",
    "ingest_assets.runs.job_progress",
    "ingest_assets.runs.list_runs",
    "ingest_assets.sensor_ticks",
    "ingest_assets.upkeep.verify.repair",
    "resources.artifact_store.paid_results.sqlite_journal",
    "resources.artifact_store.sqlite_artifact_store",
    "resources.aws.client",
    "resources.embedder.wordllama_embedder",
    "resources.extractor.llm.llm_extractor",
    "resources.extractor.local_extractor",
    "resources.records.sqlite_backend",
    "resources.store.duckdb.duckdb_store",
    "rich.progress",
    "rich.table",
    "rich.traceback",
    "safetensors.numpy",
    "structlog",
    "tokenizers",
    "typer",
    "upath.implementations.local",
)
_EXTRA_LLM = (
    "genai_prices.data",
    "openai.resources.chat",
    "pydantic_ai.direct",
    "pydantic_ai.models.bedrock",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.bedrock",
    "pydantic_ai.providers.openai",
    "toktok",
)


class _Wanted(NamedTuple):
    arguments: list[str]
    cwd: str
    environment: dict[str, str]
    dies_at: str  # a `Point`; "": nowhere


class Preloaded:
    """The process that is forked, and a way to ask it for forks; any thread may."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ingest-")
        self._address = str(Path(self._folder.name, "socket"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.end_to_end.preloaded", self._address],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,  # its end is the end of this process
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.read(1) == _READY

    def run(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout: float, dies_at: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run `ingest` to its end, as `subprocess.run` would, or to the point where it shall kill itself.

        Raises:
            subprocess.TimeoutExpired: it was killed after so many seconds.
        """
        with (
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as err,
            Path(os.devnull).open() as nothing,
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection,
        ):
            connection.connect(self._address)
            connection.settimeout(timeout)
            wanted = json.dumps([list(arguments), str(cwd), dict(environment), dies_at]).encode()
            socket.send_fds(connection, [wanted], [nothing.fileno(), out.fileno(), err.fileno()])
            pid = int(connection.recv(100))
            try:
                code = int(connection.recv(100))
            except TimeoutError as error:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(["ingest", *arguments], timeout) from error
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(["ingest", *arguments], code, out.read(), err.read())


def _become_command(address: str) -> None:
    """Serve requests; return in a process that has been forked for one, and is to be the command."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who waits for a command is nobody's concern
        os.write(1, _READY)
        while True:
            ready, _, _ = select.select([listener, 0], [], [])
            if listener not in ready:
                sys.exit()
            connection, _ = listener.accept()
            if not os.fork():
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection:
        message, descriptors, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
        if pid := os.fork():
            connection.send(str(pid).encode())
            _, status = os.waitpid(pid, 0)
            connection.send(str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    wanted = _Wanted(*json.loads(message))
    os.chdir(wanted.cwd)
    os.environ.clear()
    os.environ.update(wanted.environment)
    _open_consoles_again()
    sys.argv = ["ingest", *wanted.arguments]
    if wanted.dies_at:
        Point.read(wanted.dies_at).plant()
    sys.path[:0] = [folder for folder in wanted.environment.get("PYTHONPATH", "").split(os.pathsep) if folder]


def _load() -> None:
    """Load and read what is the same for every command."""
    for module in _MODULES:
        importlib.import_module(module)
    with contextlib.suppress(ImportError):  # without the extra its tests are skipped
        for module in _EXTRA_LLM:
            importlib.import_module(module)
    from resources.embedder import wordllama_embedder
    from tests.dagster_revisions import read_revisions_once

    read_revisions_once()
    wordllama_embedder._load = functools.cache(wordllama_embedder._load)
    wordllama_embedder._load()
    gc.freeze()  # a fork that looks for garbage would copy every page of what is loaded


def _open_consoles_again() -> None:
    """They hold copies of the descriptors from before the fork."""
    from ingest_assets.cli import output

    for console, descriptor in ((output.console, 1), (output.errors, 2)):
        vars(console).update(vars(output._console_on(descriptor)))


def _end(code: Any) -> None:
    """What Python does at the end of a process, but for taking apart what was loaded: that copies every page, too."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.path.remove(str(Path.cwd()))  # the installed program has no working directory there
    _load()
    _become_command(sys.argv[1])
    from ingest_assets.cli import main

    try:
        main()
    except SystemExit as ended:
        _end(ended.code)
