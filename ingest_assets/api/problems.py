"""Errors as problem details (RFC 9457): what happened, to what, and what to do. Nothing of the machine is in them."""

import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Scope

from ingest_assets.api.read_model.document_index import IndexUnavailableError
from ingest_assets.api.read_model.replica import NotBuiltError
from ingest_assets.components import UnknownNameError
from resources.artifact_store.artifact_store import ArtifactStoreError
from resources.document_state.ingest_jobs import UnknownJobError
from resources.records.backend import BackendError, BackendUnavailableError
from resources.store.store import StoreError, StoreUnavailableError

MEDIA_TYPE = "application/problem+json"
_RETRY_SECONDS = "5"
log = logging.getLogger(__name__)


class Problem(Exception):  # noqa: N818 - the standard's own word
    """A request that cannot be answered as asked. `kind` is the last part of its type; `extra` stands beside it."""

    def __init__(
        self,
        status: int,
        kind: str,
        title: str,
        detail: str,
        extra: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(title)
        self.status = status
        self.fields = {
            **(extra or {}),
            "type": f"urn:ingest-assets:{kind}",
            "title": title,
            "status": status,
            "detail": detail,
        }
        self.headers = headers or {}

    def response(self) -> JSONResponse:
        """The answer that says it."""
        return JSONResponse(self.fields, self.status, self.headers, MEDIA_TYPE)


class NotModified(Exception):  # noqa: N818 - an answer, not an error
    """The record is as it was when the caller read it. `etag` is its ETag."""

    def __init__(self, etag: str) -> None:
        super().__init__(etag)
        self.etag = etag


def no_such_document(document_id: str) -> Problem:
    """Nobody knows it, or it is another organisation's: the two are not told apart."""
    return Problem(
        404, "no-such-document", f"There is no document '{document_id}'.", "GET /api/documents lists those there are."
    )


def unavailable(what: str) -> Problem:
    """Something the server needs did not answer."""
    return Problem(
        503,
        "unavailable",
        f"{what} did not answer.",
        "Try again. If it stays so, `ingest status` on the server's machine says why.",
        headers={"Retry-After": _RETRY_SECONDS},
    )


def unreadable(what: str) -> Problem:
    """Something the server needs is damaged or refuses: only a person can mend it."""
    return Problem(
        503, "unreadable", f"{what} cannot be used.", "`ingest status` on the server's machine says why and what to do."
    )


def add_handlers(app: FastAPI) -> None:
    """Have every error that is known answered as a problem; any other is the gate's to answer (`fault`)."""
    for kind, problem_of in _PROBLEMS.items():
        app.add_exception_handler(kind, _handler(problem_of))
    app.add_exception_handler(NotModified, _not_modified)


def _handler(problem_of: Callable[[Any], Problem]) -> Callable[[Request, Exception], JSONResponse]:
    def handle(request: Request, error: Exception) -> JSONResponse:
        problem = problem_of(error)
        if problem.status >= _OURS:
            _tell(request, error)
        return problem.response()

    return handle


def _not_modified(_: Request, found: Exception) -> Response:
    assert isinstance(found, NotModified)
    return Response(status_code=304, headers={"ETag": found.etag})


def _invalid(error: RequestValidationError) -> Problem:
    """What is wrong where; what was sent is not repeated."""
    faults = [
        {"where": "/".join(str(part) for part in fault["loc"]), "message": fault["msg"]} for fault in error.errors()
    ]
    first = f"{faults[0]['where']}: {faults[0]['message']}." if faults else ""
    return Problem(422, "invalid", "The request is not as it must be.", f"{first} See /docs.", {"errors": faults})


def _of_status(status: int, headers: dict[str, str]) -> Problem:
    known = {
        404: ("no-such-page", "There is no such page.", "/docs lists those there are."),
        405: ("wrong-method", "This page cannot be asked in this way.", "/docs lists the methods of each."),
        400: ("malformed", "The request cannot be read.", "Send JSON as /docs says."),
    }
    return Problem(status, *known.get(status, ("refused", "The request was refused.", "See /docs.")), headers=headers)


def _unknown_name(error: Exception) -> Problem:
    return Problem(404, "unknown-name", str(error), "Use one of those that are known.")


def _state(error: BackendError) -> Problem:
    what = "The state store"
    return unavailable(what) if isinstance(error, BackendUnavailableError) else unreadable(what)


def _store(error: StoreError) -> Problem:
    what = f"Store '{error.store}'"
    return unavailable(what) if isinstance(error, StoreUnavailableError) else unreadable(what)


def fault(scope: Scope, error: Exception) -> Problem:
    """A fault of this program; where it came from is logged."""
    _tell(Request(scope), error)
    return Problem(500, "fault", "A fault of this program.", "Please report it with the line that the server logged.")


_OURS = 500
_PROBLEMS: dict[type[Exception], Callable[[Any], Problem]] = {
    Problem: lambda problem: problem,
    HTTPException: lambda error: _of_status(error.status_code, dict(error.headers or {})),
    RequestValidationError: _invalid,
    UnknownNameError: _unknown_name,
    UnknownJobError: _unknown_name,
    BackendError: _state,
    StoreError: _store,
    ArtifactStoreError: lambda _: unavailable("The artifact store"),
    IndexUnavailableError: lambda _: unavailable("The state store"),
    NotBuiltError: lambda _: unavailable("The read model is still being built; it"),
}


def _tell(request: Request, error: Exception) -> None:
    """Log where it came from, without its message: that may name files, keys or what somebody searched for."""
    frames = traceback.extract_tb(error.__traceback__)
    where = ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-4:])
    route = request.scope.get("route")
    log.error("%s %s: %s at %s", request.method, getattr(route, "path", "?"), type(error).__name__, where)


_DECLARED = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "Which problem: `urn:ingest-assets:…`."},
        "title": {"type": "string", "description": "What happened, and to what."},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What to do."},
    },
}


def declared(document: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI document in which every operation answers errors as problems."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = _DECLARED
    answer = {
        "description": "What went wrong and what to do (RFC 9457).",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"] |= {"4XX": answer, "503": answer}
    return document
