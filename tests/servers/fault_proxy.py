"""A proxy on loopback that loses, delays and invents answers when told to, and counts what passes."""

import http.client
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Self
from urllib.parse import urlsplit

from tests.servers.exchange import Answer, Request, Traffic
from tests.servers.faults import Fault

FORWARD_WITHIN = 60.0


@dataclass
class _Planned:
    """A fault, the requests it is for and how many more of them it meets."""

    fault: Fault
    when: Callable[[Request], bool]
    times: int


class FaultProxy:
    """Stands before the server at `target`; a context manager.

    Without faults it passes everything on unchanged. `traffic` holds what passed, by `Request.operation`.
    """

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target).netloc
        self._lock = threading.Lock()
        self._planned: list[_Planned] = []
        self._server = _Server(("127.0.0.1", 0), type("_HandlerOfProxy", (_Handler,), {"proxy": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="proxy", daemon=True)
        self.traffic: defaultdict[str, Traffic] = defaultdict(Traffic)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def inject(self, fault: Fault, when: Callable[[Request], bool] = lambda _: True, times: int = 1) -> None:
        """Let the next `times` requests for which `when` is true meet the fault. The oldest fault goes first."""
        with self._lock:
            self._planned.append(_Planned(fault, when, times))

    def reset_traffic(self) -> None:
        """Count from nothing again."""
        with self._lock:
            self.traffic.clear()

    def pending(self) -> int:
        """How many faults have met no request yet. A test that ends with some has not tested what it thinks."""
        with self._lock:
            return sum(planned.times for planned in self._planned)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def exchange(self, request: Request) -> bytes | None:
        """The answer for the client; None if its connection is to be closed without one."""
        fault = self._fault_for(request)
        answer = fault(request, lambda: self._forward(request)) if fault else self._forward(request)
        encoded = answer.encode(request.method) if answer else None
        self._count(request, len(encoded or b""))
        return encoded

    def _fault_for(self, request: Request) -> Fault | None:
        """The fault that this request meets, used up by one."""
        with self._lock:
            for planned in self._planned:
                if planned.times > 0 and planned.when(request):
                    planned.times -= 1
                    return planned.fault
        return None

    def _count(self, request: Request, received: int) -> None:
        with self._lock:
            traffic = self.traffic[request.operation]
            traffic.requests += 1
            traffic.sent += request.size
            traffic.received += received

    def _forward(self, request: Request) -> Answer:
        """Ask the server, on a connection of its own, and read its whole answer."""
        connection = http.client.HTTPConnection(self._target, timeout=FORWARD_WITHIN)
        try:
            connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
            for name, value in request.forwarded_headers():
                connection.putheader(name, value)
            connection.endheaders(request.body)
            response = connection.getresponse()
            return Answer(response.status, response.read(), response.getheaders())
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    """Its connections' threads end with the process, and many clients may knock at once."""

    daemon_threads = True
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    """A client's connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: ClassVar[FaultProxy]

    def _answer(self) -> None:
        """Read a request and answer it."""
        if "Transfer-Encoding" in self.headers:
            raise NotImplementedError("the proxy reads no chunked body: give the client bytes, not a stream")
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        encoded = self.proxy.exchange(Request(self.command, self.path, self.headers, body))
        if encoded is None:
            self.close_connection = True
        else:
            self.wfile.write(encoded)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - the base class names them

    def log_message(self, *_: object) -> None:
        """The tests' output is not for the proxy's log."""
