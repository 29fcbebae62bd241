"""A project that is served: the installed command, on a port of its own, asked over HTTP."""

import subprocess
import threading
from types import TracebackType
from typing import Self

import httpx

from tests.end_to_end.project import Project

PATIENCE = 60.0


class Served:
    """A running `ingest serve`; `client` carries the token it made, or `token` if one is given."""

    def __init__(self, project: Project, *options: str, token: str = "") -> None:
        self.process = project.start("serve", "--port", "0", *options)
        self.printed: list[str] = []
        self._log: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        address = self.process.stdout.readline().split()
        if len(address) < 3:
            raise AssertionError(self.process.stderr.read())
        self.url = address[2].rstrip(".")
        self.sign_in = self.process.stdout.readline().split("Sign in: ")[1].strip()
        self.token = token or self.sign_in.rpartition("=")[2]
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self.stranger = httpx.Client(base_url=self.url, timeout=PATIENCE)
        self.client = self.as_user(self.token)
        self.client.get("/readyz")

    def as_user(self, token: str) -> httpx.Client:
        """A client with another token."""
        return httpx.Client(base_url=self.url, timeout=PATIENCE, headers={"Authorization": f"Bearer {token}"})

    @property
    def log(self) -> str:
        """What was logged so far."""
        return "".join(self._log)

    def stop(self) -> int:
        """End it as Ctrl-C does; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(subprocess.signal.SIGINT)
        code = self.process.wait(timeout=PATIENCE)
        self._reader.join(timeout=PATIENCE)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self.stranger.close()
        self.stop()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        self._log.extend(self.process.stderr)
