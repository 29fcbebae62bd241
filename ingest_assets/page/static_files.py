"""The style sheet and the scripts, as they are in the package. Their addresses change with their content."""

import hashlib
from functools import lru_cache
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse

from ingest_assets.api.problems import Problem
from ingest_assets.api.services import READS

router = APIRouter(prefix="/static", include_in_schema=False, dependencies=[READS])
_FOLDER = Path(__file__).parent / "static"
_TYPES = {"style.css": "text/css", "page.js": "text/javascript", "htmx.min.js": "text/javascript"}
_FOR_EVER = {"Cache-Control": "private, max-age=31536000, immutable"}


@router.get("/{name}")
async def static_file(name: str) -> FileResponse:
    """One of them."""
    if name not in _TYPES:
        raise Problem(404, "no-such-page", "There is no such file.", "Load the page again.")
    return FileResponse(_FOLDER / name, media_type=_TYPES[name], headers=_FOR_EVER)


@lru_cache(maxsize=len(_TYPES))
def address_of(name: str) -> str:
    """Where a page finds one of them."""
    return f"/static/{name}?v={hashlib.sha256((_FOLDER / name).read_bytes()).hexdigest()[:12]}"


def style_sheet() -> str:
    """The style sheet itself, for whoever may not ask for it: a page without sign-in carries it."""
    return (_FOLDER / "style.css").read_text()
