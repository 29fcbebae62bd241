"""The gate before every route: host, token, rate, origin and size are looked at here, so no route can forget it."""

import asyncio
import logging
import math
import time
from typing import Literal, TypedDict
from urllib.parse import parse_qs, urlsplit

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ingest_assets.api.problems import Problem, fault, unavailable
from ingest_assets.api.rate_limit import RateLimit
from ingest_assets.api.tokens import Caller, Tokens

_COOKIE = "ingest_token"
SIGN_IN = "/sign-in"
_SIGN_OUT = "/sign-out"
OPEN = frozenset({"/healthz", "/readyz"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_WRONG_TOKENS_PER_MINUTE = 60
_SIGN_IN_BYTES = 4096
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
log = logging.getLogger(__name__)


class _CookieRules(TypedDict):
    httponly: bool
    samesite: Literal["strict"]
    secure: bool


class Rules(msgspec.Struct, frozen=True):
    """What the gate keeps.

    Attributes:
        tokens: who may ask.
        hosts: the names, in lower case and without a port, by which the server may be called.
        requests_per_minute: of one token.
        body_bytes: the longest body.
        read_only: no token may change anything.
    """

    tokens: Tokens
    hosts: frozenset[str]
    requests_per_minute: int
    body_bytes: int
    read_only: bool = False


class Gate:
    """ASGI middleware around the whole application. Puts the `Caller` into the request's state."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules
        self._of_callers = RateLimit(rules.requests_per_minute)
        self._of_strangers = RateLimit(_WRONG_TOKENS_PER_MINUTE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let it through."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no websocket is spoken here: the server closes it
        if scope["method"] == "HEAD":  # as monitors ask; the server leaves the body out
            scope = {**scope, "method": "GET"}
        begun = time.monotonic()
        answer = _Answer(send, scope)
        try:
            answering, receive = await self._admitted(scope, receive)
            await answering(scope, receive, answer.send)
        except asyncio.CancelledError:
            # The server ends, and waits no longer. Who watches a job goes on watching when it is back.
            if answer.status:
                await answer.send({"type": "http.response.body"})
            else:
                await unavailable("The server is being stopped; it").response()(scope, receive, answer.send)
        except Exception as error:
            # Here every answer gets its headers. The framework would answer around the gate, and hand the words of the
            # error, which may name files or keys, to the server's log.
            if answer.status:
                raise
            await fault(scope, error).response()(scope, receive, answer.send)
        finally:
            _log(scope, answer.status, time.monotonic() - begun)

    async def _admitted(self, scope: Scope, receive: Receive) -> tuple[ASGIApp, Receive]:
        """Who answers a request, the application or a refusal, and from where its body is read."""
        try:
            if scope["path"] == SIGN_IN:
                return await self._signed_in(scope, receive), receive
            if scope["path"] == _SIGN_OUT and scope["method"] == "POST":
                return self._signed_out(scope), receive
            self._look_at(scope)
            if scope["method"] not in _SAFE:
                receive = _replayed(await _read(receive, self._rules.body_bytes), receive)
        except Problem as problem:
            return problem.response(), receive
        return self._app, receive

    def _look_at(self, scope: Scope) -> None:
        """Refuse a request, or do nothing but note whose it is.

        Raises:
            Problem: it is refused.
        """
        headers = Headers(scope=scope)
        self._check_host(headers)
        if scope["path"] in OPEN:
            return
        token, by_cookie = _token_of(headers)
        caller = self._caller_of(scope, token)
        self._check_rate(self._of_callers, f"{caller.org_id}/{caller.user}")
        if scope["method"] not in _SAFE:
            self._check_origin(headers, by_cookie=by_cookie)
            self._check_size(headers)
        scope.setdefault("state", {})["caller"] = caller.reading_only() if self._rules.read_only else caller

    async def _signed_in(self, scope: Scope, receive: Receive) -> Response:
        """A token becomes a cookie: of the address that was printed, which it leaves, or of the form for strangers."""
        headers = Headers(scope=scope)
        self._check_host(headers)
        sent = scope["query_string"]
        if scope["method"] == "POST":
            self._check_origin(headers, by_cookie=True)
            sent = await _read(receive, _SIGN_IN_BYTES)
        given = parse_qs(sent.decode("latin-1")).get("token", [""])[0]
        self._caller_of(scope, given)
        response = RedirectResponse("/", 303, {"cache-control": "no-store"})
        response.set_cookie(_cookie_of(headers), given, **_cookie_rules(scope))
        return response

    def _signed_out(self, scope: Scope) -> Response:
        """The cookie goes; whose it was, or whether there was one, is not asked. The token stays as good as it was."""
        headers = Headers(scope=scope)
        self._check_host(headers)
        self._check_origin(headers, by_cookie=True)
        response = RedirectResponse("/", 303, {"cache-control": "no-store"})
        response.delete_cookie(_cookie_of(headers), **_cookie_rules(scope))
        return response

    def _caller_of(self, scope: Scope, token: str) -> Caller:
        caller = self._rules.tokens.caller_of(token) if token else None
        if caller is None:
            if token:
                self._check_rate(self._of_strangers, (scope.get("client") or ("?", 0))[0])
            raise Problem(
                401,
                "no-token",
                "This needs a token.",
                "Send `Authorization: Bearer TOKEN`. In a browser, open the sign-in address that `ingest serve` "
                "printed. `ingest tokens new` makes a token.",
                headers={"WWW-Authenticate": 'Bearer realm="ingest"'},
            )
        return caller

    def _check_host(self, headers: Headers) -> None:
        """A name that was pointed at this machine by somebody else's DNS is not one of ours."""
        if _name_of(headers.get("host", "")) not in self._rules.hosts:
            raise Problem(
                421,
                "wrong-host",
                "This server is not called so.",
                "Use the address that `ingest serve` printed, or add the name to `hosts` under [api] in ingest.toml.",
            )

    def _check_origin(self, headers: Headers, *, by_cookie: bool) -> None:
        """A change that a browser sends must come from a page of this server; programs send no origin and no cookie."""
        origin = headers.get("origin")
        if origin is None and not by_cookie:
            return
        same = origin is not None and urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
        if not same or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Problem(
                403,
                "wrong-origin",
                "Another site asked for this change.",
                "Make changes from this server's own pages, or by a program with a bearer token and no Origin.",
            )

    def _check_rate(self, limit: RateLimit, key: str) -> None:
        wait = limit.wait_seconds(key)
        if wait:
            raise Problem(
                429,
                "too-many-requests",
                "Too many requests.",
                "Wait as long as Retry-After says. `requests_per_minute` under [api] in ingest.toml is the limit.",
                headers={"Retry-After": str(math.ceil(wait))},
            )

    def _check_size(self, headers: Headers) -> None:
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > self._rules.body_bytes:
            raise too_long(self._rules.body_bytes)


def too_long(limit: int) -> Problem:
    """A body over the limit."""
    return Problem(
        413,
        "too-long",
        f"The request is longer than {limit:,} bytes.",
        "Send it in parts, or raise `body_bytes` under [api] in ingest.toml.",
        headers={"Connection": "close"},
    )


async def _read(receive: Receive, limit: int) -> bytes:
    """A request's body, counted while it is read: its length need not be what the header says, or be said at all."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise too_long(limit)
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A body that was read, for whoever reads it next; then what else comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


class _Answer:
    """An answer on its way: it gets the headers that all have."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self._send = send
        self._is_open = scope["path"] in OPEN
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-store" if self._is_open else "private, no-cache")
        await self._send(message)


def _token_of(headers: Headers) -> tuple[str, bool]:
    """The token of a request, and whether it came as a cookie; a bearer token goes before a cookie."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return token.strip(), False
    given = cookie_parser(headers.get("cookie", "")).get(_cookie_of(headers))
    return (given, True) if given is not None else ("", False)


def _cookie_of(headers: Headers) -> str:
    """The name of our cookie. A browser has one jar for all ports of a host, and on each may be a server like this."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"{_COOKIE}_{port}" if port.isascii() and port.isdecimal() else _COOKIE


def _cookie_rules(scope: Scope) -> _CookieRules:
    """No script reads it and no other site sends it; what came by TLS goes by nothing else."""
    return {"httponly": True, "samesite": "strict", "secure": scope["scheme"] == "https"}


def _name_of(host: str) -> str:
    """A Host header without its port, in lower case; "" if it is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _log(scope: Scope, status: int, seconds: float) -> None:
    """One line a request: the route, never the address as it was sent, which may hold a token or what was searched."""
    route = getattr(scope.get("route"), "path", "-")
    caller = scope.get("state", {}).get("caller")
    log.info("%s %s %d %.0f ms %s", scope["method"], route, status, seconds * 1000, caller.user if caller else "-")
