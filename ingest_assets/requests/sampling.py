"""What extracting documents would cost, told within seconds: some are read and parsed, and stand for the others."""

from collections.abc import Sequence

import msgspec

from ingest_assets.components import Components
from ingest_assets.requests.costing import SpendEstimate, estimate_spending
from resources.document_source.document_ids import hash_part

SAMPLE = 100
SECONDS = 10.0


class SampleWanted(msgspec.Struct, frozen=True):
    """The documents that are to be read, and whether what an older configuration extracted is asked for anew."""

    document_ids: tuple[str, ...]
    renews: bool


class EstimateReply(msgspec.Struct, frozen=True):
    """What came of it: an estimate, or in a sentence why there is none; neither if extraction costs nothing."""

    estimate: SpendEstimate | None = None
    refusal: str = ""


class SampledSpending(msgspec.Struct, frozen=True):
    """What documents would cost together, in millionths of a dollar.

    Attributes:
        n_documents: how many there are to extract.
        n_read: how many of them were read and parsed; if not all, the sums are reckoned from these.
        n_unreadable: how many of all cannot be extracted.
        n_calls, n_answered, worst_micro_usd, expected_micro_usd: as in DocumentCost, of all together.
        left_micro_usd: what the ceilings leave a new job; None: there are none.
    """

    n_documents: int
    n_read: int
    n_unreadable: int
    n_calls: int
    n_answered: int
    worst_micro_usd: int
    expected_micro_usd: int | None
    left_micro_usd: int | None

    @property
    def is_reckoned(self) -> bool:
        """Whether it is told of all documents, and only some were read."""
        return self.n_read < self.n_documents

    @property
    def fits(self) -> bool:
        """Whether the ceilings leave enough for the worst case."""
        return self.left_micro_usd is None or self.worst_micro_usd <= self.left_micro_usd


def drawn(document_ids: Sequence[str], most: int = SAMPLE) -> tuple[str, ...]:
    """The documents that stand for all: as good as drawn by lot, whatever their names, and the same ones each time."""
    return tuple(sorted(document_ids, key=hash_part)[:most])


async def estimate_sample(
    components: Components, wanted: SampleWanted, seconds: float = SECONDS
) -> SpendEstimate | None:
    """Read and parse the documents, those that there is time for; None if extraction costs nothing.

    Raises:
        ExtractorConfigError: the extractor cannot work as it is configured.
    """
    docs = await components.state.get_many(wanted.document_ids)
    documents = [(key, docs[key].source_uri) for key in wanted.document_ids if key in docs]
    return await estimate_spending(components, documents, lambda _: None, renews=wanted.renews, seconds=seconds)


def of_all(sample: SpendEstimate, n_documents: int) -> SampledSpending:
    """What all would cost if they are like those that were read; at least one was."""
    n_read = len(sample.documents)

    def scaled(number: int) -> int:
        return round(number * n_documents / n_read)

    return SampledSpending(
        n_documents,
        n_read,
        scaled(sum(each.reason is not None for each in sample.documents)),
        scaled(sample.n_calls),
        scaled(sample.n_answered),
        scaled(sample.worst_micro_usd),
        None if sample.expected_micro_usd is None else scaled(sample.expected_micro_usd),
        sample.left_micro_usd,
    )
