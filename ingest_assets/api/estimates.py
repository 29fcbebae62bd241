"""The route that says what a job would take, and begins nothing."""

from fastapi import APIRouter
from pydantic import Field

from ingest_assets.api.estimating import Takes, what_it_takes
from ingest_assets.api.job_shapes import WantedJob
from ingest_assets.api.services import WRITES, Asking, Given
from ingest_assets.api.shapes import Shape

router = APIRouter(prefix="/api", tags=["work"], dependencies=[WRITES])


class SpendingShape(Shape):
    """What extraction would cost. If `nRead` is less than `nToExtract`, it is reckoned from those that were read."""

    model: str
    n_read: int = Field(description="documents that were read and parsed for this, drawn by lot")
    n_unreadable: int
    n_calls: int
    n_answered: int = Field(description="chunks that cost nothing: their answers are kept")
    worst_usd: float
    expected_usd: float | None = Field(description="as calls of the last thirty days came out; null: there were none")
    left_usd: float | None = Field(description="what the ceilings leave a new job; null: nothing limits it")


class EstimateShape(Shape):
    """What a job would take now. `spending` is null if extraction costs nothing or, as `untold` says, is not known."""

    n_due: int
    n_current: int
    n_busy: int
    n_to_extract: int
    n_chunks: int = Field(description="embedded at most, besides those that extraction gives")
    spending: SpendingShape | None
    untold: str


@router.post("/ingestion-jobs/estimate")
async def estimate(wanted: WantedJob, services: Given, caller: Asking) -> EstimateShape:
    """What a job would take, and cost. With a paid extractor some of its documents are read and parsed for it."""
    return _shape(await what_it_takes(services, caller, wanted), services.settings.extractor)


def _shape(takes: Takes, model: str) -> EstimateShape:
    """What a job would take."""
    cost = takes.spending
    spending = None
    if cost is not None:
        spending = SpendingShape(
            model=model,
            n_read=cost.n_read,
            n_unreadable=cost.n_unreadable,
            n_calls=cost.n_calls,
            n_answered=cost.n_answered,
            worst_usd=cost.worst_micro_usd / 1_000_000,
            expected_usd=None if cost.expected_micro_usd is None else cost.expected_micro_usd / 1_000_000,
            left_usd=None if cost.left_micro_usd is None else cost.left_micro_usd / 1_000_000,
        )
    return EstimateShape(
        n_due=takes.n_due,
        n_current=takes.n_current,
        n_busy=takes.n_busy,
        n_to_extract=takes.n_to_extract,
        n_chunks=takes.n_chunks,
        spending=spending,
        untold=takes.untold,
    )
