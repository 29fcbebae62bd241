"""moto in this process, one request at a time."""

import functools
import threading
from collections.abc import Iterable
from typing import Any, Self

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server


class _Dispatcher(DomainDispatcherApplication):
    """Finds a service once: moto itself lists its own folders for each request, a fifth of what one takes."""

    @functools.cache  # noqa: B019 - it lives as long as the server
    def get_backend_for_host(self, host: str | None) -> Any:
        """The service that a host stands for."""
        return super().get_backend_for_host(host)


class _Handler(MotoRequestHandler):
    """Keeps no log: a contract makes thousands of requests."""

    def log_request(self, *_: object) -> None:
        """Say nothing."""


class SerialMotoServer:
    """S3 and DynamoDB on a free port of the loopback device; a context manager.

    moto checks a condition and then writes, with no lock in between, so two requests at once could both win. A lock is
    held for each request. Connections still have a thread each: one thread for all would let a client that keeps its
    connection open starve the others.
    """

    def __init__(self) -> None:
        self._app = _Dispatcher(create_backend_app)
        self._one_at_a_time = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True, request_handler=_Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="moto", daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _serve(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request; the body is made while the lock is held."""
        with self._one_at_a_time:
            return list(self._app(environ, start_response))
