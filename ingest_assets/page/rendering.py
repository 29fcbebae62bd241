"""Templates become answers: everything shown is escaped text, and what is live is sent again only if it changed."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ingest_assets.api.services import Services
from ingest_assets.api.tokens import Caller, Scope
from ingest_assets.page import words
from ingest_assets.page.static_files import address_of
from ingest_assets.page.visible_text import visible
from resources.clock import to_the_second
from resources.document_state.spend_book import in_dollars

# Forms of a page under `no-referrer`, which is the API's, would come without the origin that changes need.
FORMS_MAY_BE_SENT = "same-origin"


class Live(NamedTuple):
    """A part of a page that asks for itself again, and the mark of what it shows."""

    html: Markup
    seen: str


def page(
    template: str, services: Services, caller: Caller, values: Mapping[str, Any], status: int = 200
) -> HTMLResponse:
    """A whole page."""
    known = {
        "user": caller.user,
        "may_write": Scope.WRITE in caller.scopes,
        "may_delete": Scope.ADMIN in caller.scopes,
        "dagster_url": services.settings.api.dagster_url,
    }
    return HTMLResponse(html(template, {**known, **values}), status, {"Referrer-Policy": FORMS_MAY_BE_SENT})


def html(template: str, values: Mapping[str, Any]) -> Markup:
    """A template filled in."""
    return Markup(_environment().get_template(template).render(values))  # noqa: S704 - escaped by the template


def live(template: str, name: str, address: str, values: Mapping[str, Any], seconds: int | None = 2) -> Live:
    """A part of a page that asks for itself again.

    Args:
        template: what it shows.
        name: its id in the page.
        address: where it is asked for; a query in it is kept.
        values: for the template.
        seconds: between two times; None: it does not change any more.
    """
    inner = html(template, values)
    seen = hashlib.sha256(inner.encode()).hexdigest()[:16]
    joined = f"{address}{'&' if '?' in address else '?'}seen={seen}"
    around = {"inner": inner, "name": name, "address": joined, "seconds": seconds, "said": values.get("said", "")}
    return Live(html("live.html", around), seen)


def live_answer(part: Live, seen: str) -> Response:
    """What is sent to a page that shows `seen`: nothing if that is so still, and then nothing on it moves."""
    return Response(status_code=204) if part.seen == seen else HTMLResponse(part.html)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ingest_assets.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    environment.filters |= {
        "raw_text": raw_text,
        "code": _with_code,
        "n": _number,
        "when": _when,
        "dollars": in_dollars,
        "path": lambda part: quote(str(part), safe=""),
        "query": query_of,
        "plural": lambda n, one, many: one if n == 1 else many,
    }
    environment.globals |= {"words": words, "static": address_of}
    return environment


def _finalized(value: Any) -> Any:
    """Every value on its way into a page: a text that is no markup of ours is shown with what hides in it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def raw_text(text: str) -> Markup:
    """A text that is to come back as it is, in a field: escaped and nothing else. Half a character cannot be sent."""
    return escape(text.encode("utf-8", "replace").decode())


def query_of(values: Mapping[str, Any]) -> str:
    """A query string of what is not empty."""
    given = [(name, value) for name, value in values.items() if value not in ("", (), None)]
    return urlencode(given, doseq=True, errors="replace")


def _with_code(text: str) -> Markup:
    """A text of ours, in which commands stand between backticks."""
    parts = [visible(part) for part in text.split("`")]
    shown = [Markup("<code>{}</code>").format(part) if n % 2 else escape(part) for n, part in enumerate(parts)]
    return Markup().join(shown)


def _number(value: float) -> str:
    return f"{value:,}"


def _when(moment: datetime | None) -> Markup:
    if moment is None:
        return Markup("")
    exact = moment.astimezone(UTC).isoformat(timespec="seconds")
    return Markup('<time datetime="{}">{}</time>').format(exact, to_the_second(moment))
