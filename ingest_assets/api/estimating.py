"""What a job would take, told before it begins: documents, chunks, and what a paid extractor would cost."""

import asyncio
from collections.abc import Sequence

import msgspec

from ingest_assets.api.asking_for_work import chosen_for
from ingest_assets.api.estimate_process import NotEstimatedError
from ingest_assets.api.job_shapes import WantedJob
from ingest_assets.api.services import Services
from ingest_assets.api.tokens import Caller
from ingest_assets.requests.asking import Asked, Kind
from ingest_assets.requests.forecast import estimate_of, is_to_extract
from ingest_assets.requests.sampling import SampledSpending
from ingest_assets.upkeep.staleness import Configured, standings
from resources.document_state.model import DocStatus

_NAMED = 20
_AT_ONCE = 50


class Takes(msgspec.Struct):
    """What a job would take.

    Attributes:
        n_due: documents at which there is something to do; `names` are those of the first ones.
        n_current: documents that are up to date, and left as they are.
        n_busy: documents that are being worked on, and left out.
        to_extract: ids of those that would be extracted.
        n_chunks: how many chunks are embedded at most, in all stores together.
        spending: what extraction would cost; None: nothing, or it cannot be told, and `untold` says why.
    """

    n_due: int = 0
    n_current: int = 0
    n_busy: int = 0
    to_extract: list[str] = []
    n_chunks: int = 0
    names: list[str] = []
    spending: SampledSpending | None = None
    untold: str = ""

    @property
    def n_to_extract(self) -> int:
        """How many documents would be extracted."""
        return len(self.to_extract)


async def what_it_takes(services: Services, caller: Caller, wanted: WantedJob) -> Takes:
    """What the job would take now.

    Raises:
        Problem: a document is unknown, or it is not said which.
        UnknownNameError: a store is unknown.
    """
    for slug in wanted.stores:
        await services.components.target(slug)
    chosen = await chosen_for(services, caller, wanted)
    takes = await _looked_at(services, wanted, chosen.document_ids)
    takes.n_busy = chosen.n_busy
    if takes.to_extract and services.components.extractor.is_paid:
        renews = Kind(wanted.mode).renews_extraction
        try:
            takes.spending = await services.estimator.spending(takes.to_extract, renews=renews)
        except NotEstimatedError as error:
            takes.untold = str(error)
        if takes.spending is not None and caller.org_id != services.settings.org_id:
            # What is left is of the project's own bill.
            takes.spending = msgspec.structs.replace(takes.spending, left_micro_usd=None)
    return takes


async def _looked_at(services: Services, wanted: WantedJob, document_ids: Sequence[str]) -> Takes:
    """Looks at a part of the documents at a time, so that others are answered in between."""
    configured = await services.components.configured()
    asked = Asked(Kind(wanted.mode), wanted.stores)
    stores = wanted.stores or tuple(configured.stores)
    takes = Takes()
    for start in range(0, len(document_ids), _AT_ONCE):
        docs = await services.components.state.get_many(document_ids[start : start + _AT_ONCE])
        due = [doc for doc in docs.values() if not _is_current(doc, configured, stores)]
        takes.n_due += len(due)
        takes.n_current += len(docs) - len(due)
        takes.to_extract += [doc.document_id for doc in due if is_to_extract(doc, asked, configured)]
        takes.n_chunks += estimate_of(due, asked, configured).n_chunks
        takes.names += [doc.title or doc.filename for doc in due[: _NAMED - len(takes.names)]]
        await asyncio.sleep(0)
    return takes


def _is_current(doc: DocStatus, configured: Configured, stores: Sequence[str]) -> bool:
    """Whether a job would find nothing to do at a document."""
    return all(standing.is_current for standing in standings(doc, configured, stores))
