"""A scripted model behind HTTP: OpenAI's chat completions and Bedrock's Converse at one address.

    python -m tests.servers.model_server PORT

In the test's process by `model_server`, or as a process of its own, which outlives a client that is killed. Either way
a test scripts it and reads its calls over HTTP, through `ModelServer`.
"""

import json
import re
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.servers.scripted_model import PAID, Received, Reply, ScriptedModel, Step
from tests.servers.server_process import ServerProcess, free_ports

_CONVERSE = re.compile(r"/model/([^/]+)/converse")


class ModelServer:
    """A running scripted model, as a test sees it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def script(self, *steps: Step) -> None:
        """From now on: the first step that fits a call decides; none: it is answered at once."""
        self._post("/script", [asdict(step) for step in steps])

    def forget(self) -> None:
        """Start counting anew."""
        self._post("/forget", None)

    @property
    def calls(self) -> list[Received]:
        """Every call so far, in the order they came."""
        return [Received(**call) for call in self._get("/report")["calls"]]

    @property
    def n_paid(self) -> int:
        """How many calls were answered, and so paid for, whether the answer arrived or not."""
        return sum(call.kind in PAID for call in self.calls)

    @property
    def most_in_flight(self) -> int:
        """How many calls were in flight at most."""
        return int(self._get("/report")["most_in_flight"])

    def environment(self) -> dict[str, str]:
        """What makes the real client libraries come here."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "sk-scripted-0123456789",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": self.url,
        }

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path) as reply:
            return json.load(reply)

    def _post(self, path: str, value: Any) -> None:
        request = urllib.request.Request(self.url + path, json.dumps(value).encode(), method="POST")
        urllib.request.urlopen(request).close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_GET(self) -> None:
        self._send(Reply(200, self.server.model.report()))

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        model = self.server.model
        if self.path == "/script":
            model.script([Step(**step) for step in content])
            self._send(Reply(200, {}))
        elif self.path == "/forget":
            model.forget()
            self._send(Reply(200, {}))
        else:
            self._answer(content)

    def _answer(self, body: dict[str, Any]) -> None:
        model = self.server.model
        model.entered()
        try:
            authorization = self.headers.get("Authorization", "").removeprefix("Bearer ")
            key = self.headers.get("X-Amz-Security-Token", authorization)
            converse = _CONVERSE.fullmatch(self.path)
            if converse:
                reply = model.reply("bedrock", unquote(converse[1]), body, key)
            else:
                reply = model.reply("openai", body["model"], body, key)
            time.sleep(reply.seconds)
        finally:
            model.left()
        if reply.drop:
            self.close_connection = True
        else:
            self._send(reply)

    def _send(self, reply: Reply) -> None:
        content = json.dumps(reply.body).encode()
        self.send_response(reply.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content)), **reply.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing: calls are remembered, not printed."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.model = ScriptedModel()

    def handle_error(self, *_: object) -> None:
        """A client that went away, as one that was killed does, is no error."""


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """A scripted model in this process, at a port of its own."""
    server = _Server(0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield ModelServer(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def model_process(folder: Path) -> Iterator[ModelServer]:
    """A scripted model as a process of its own.

    Args:
        folder: where it logs.
    """
    [port] = free_ports(1)
    command = [sys.executable, "-m", "tests.servers.model_server", str(port)]
    server = ModelServer(f"http://127.0.0.1:{port}")
    root = Path(__file__).parents[2]
    with ServerProcess(command, folder, {"PYTHONPATH": str(root)}) as process:
        process.wait_until(server.forget)
        yield server


if __name__ == "__main__":
    _Server(int(sys.argv[1])).serve_forever()
