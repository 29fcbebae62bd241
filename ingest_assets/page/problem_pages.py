"""Problems as pages for browsers: the same title and what to do, on a page instead of as JSON."""

import base64
import hashlib
import json
from typing import Any

from markupsafe import Markup
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ingest_assets.api.problems import MEDIA_TYPE
from ingest_assets.page.rendering import FORMS_MAY_BE_SENT, html
from ingest_assets.page.static_files import style_sheet

_UNAUTHORIZED = 401


class ProblemPages:
    """ASGI middleware around everything else. Programs, which do not ask for HTML, get problems as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        wants_page = scope["type"] == "http" and "text/html" in Headers(scope=scope).get("accept", "")
        await self._app(scope, receive, _Answer(send).send if wants_page else send)


class _Answer:
    """An answer on its way; if it is a problem, it is held until its body is whole."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        """Pass a message on, or hold it."""
        if message["type"] == "http.response.start":
            if Headers(raw=message["headers"]).get("content-type") != MEDIA_TYPE:
                await self._send(message)
            else:
                self._held = message
        elif self._held is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_page(self._held, json.loads(self._body))

    async def _send_page(self, start: Message, problem: dict[str, Any]) -> None:
        is_stranger = start["status"] == _UNAUTHORIZED
        style = Markup(style_sheet() if is_stranger else "")  # noqa: S704 - a file of ours
        page = html("problem.html", {"problem": problem, "is_stranger": is_stranger, "style": style}).encode()
        headers = MutableHeaders(raw=start["headers"])
        headers["content-type"] = "text/html; charset=utf-8"
        headers["content-length"] = str(len(page))
        if is_stranger:  # whoever is not signed in is not given the file, and sends a form
            headers["referrer-policy"] = FORMS_MAY_BE_SENT
            digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
            policy = headers.get("content-security-policy", "")
            headers["content-security-policy"] = policy.replace("style-src 'self'", f"style-src 'sha256-{digest}'")
        await self._send({**start, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": page})
