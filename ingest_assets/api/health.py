"""Whether the server lives and whether it can work: for supervisors and balancers, so without a token."""

from fastapi import APIRouter

from ingest_assets.api.services import Given
from ingest_assets.api.shapes import Shape

router = APIRouter(tags=["health"])


class Health(Shape):
    """Fine; otherwise there is no such answer."""

    status: str = "ok"


@router.get("/healthz")
async def lives() -> Health:
    """The process answers."""
    return Health()


@router.get("/readyz")
async def is_ready(services: Given) -> Health:
    """The state store answers."""
    await services.components.state.get_status("-")
    return Health()
