"""A server as a process that ends with the tests, however they end."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from botocore.exceptions import BotoCoreError, ClientError

READY_WITHIN = 60.0
LOG_SHOWN = 4000


class ServerProcess:
    """A command in a process group of its own, working in `folder`; a context manager.

    A companion process waits for the end of its input, which comes when this process closes the pipe or dies. Then it
    kills the group: a test run that was killed leaves no server behind.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._command = command
        self._folder = folder
        home = str(folder)
        self._environment = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, **(environment or {})}
        self._log = folder / "log"

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._server = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._companion = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _; kill -9 "-$1"', "companion", str(self._server.pid)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._companion.communicate()
        self._server.wait()

    def wait_until(self, works: Callable[[], object]) -> None:
        """Try until it works.

        Raises:
            RuntimeError: The server ended, or did not work in time. The message ends with what it logged.
        """
        deadline = time.monotonic() + READY_WITHIN
        while True:
            try:
                works()
            except (BotoCoreError, ClientError, OSError) as error:
                if self._server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{self._command[0]} does not work: {error}\n{self.log()}") from error
                time.sleep(0.05)
            else:
                return

    def log(self) -> str:
        """The end of what the server printed."""
        return self._log.read_text(errors="replace")[-LOG_SHOWN:]


def free_ports(count: int) -> list[int]:
    """Ports of the loopback device that nothing listens on."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in taken]
    for listener in taken:
        listener.close()
    return ports
