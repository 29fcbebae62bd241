"""An answer that was paid for, and how it is kept: packed, under a digest that shows any damage."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from resources.artifact_store.paid_results.call_log import Call
from resources.artifact_store.paid_results.frame import framed, unframed
from resources.artifact_store.paid_results.usage import Usage


class Answer(msgspec.Struct, frozen=True):
    """A model's answer to one input.

    Attributes:
        key: the hash of organisation, model, prompt, schema and input.
        body: what was answered.
        document_ids: the documents that need it.
    """

    key: str
    body: bytes
    document_ids: tuple[str, ...]


class PaidResult(msgspec.Struct, frozen=True):
    """An answer as it is kept.

    Attributes:
        key: see Answer.
        org_id: whose it is.
        model: who answered.
        reservation_id: out of which reservation it was paid.
        at: when it was kept.
        usage: its share of the call that brought it: what asking again would cost.
        body: see Answer.
    """

    key: str
    org_id: str
    model: str
    reservation_id: str
    at: datetime
    usage: Usage
    body: bytes


def pack(result: PaidResult) -> bytes:
    """A result as bytes."""
    return framed(msgspec.msgpack.encode(result))


def unpack(key: str, kept: bytes) -> PaidResult | None:
    """The result under a key; None if the bytes are damaged or another key's: then it counts as never paid for."""
    raw = unframed(kept)
    if raw is None:
        return None
    try:
        result = msgspec.msgpack.decode(raw, type=PaidResult)
    except msgspec.MsgspecError:
        return None
    return result if result.key == key else None


def results_of(
    call: Call, reservation_id: str, answers: Sequence[Answer], usage: Usage, now: datetime
) -> list[PaidResult]:
    """The answers of one call as they are kept, each with its share of what the call used."""
    shares = usage.shared(len(answers))
    return [
        PaidResult(answer.key, call.org_id, call.model, reservation_id, now, share, answer.body)
        for answer, share in zip(answers, shares, strict=True)
    ]


class KeptTotal(msgspec.Struct, frozen=True):
    """Answers that are kept, and what asking for them again would cost."""

    org_id: str
    model: str
    n_results: int
    n_bytes: int
    usage: Usage


def totals_of(kept: Sequence[tuple[PaidResult, int]]) -> list[KeptTotal]:
    """Results and their sizes in bytes, added up by organisation and model."""
    found: dict[tuple[str, str], KeptTotal] = {}
    for result, size in kept:
        place = (result.org_id, result.model)
        before = found.get(place) or KeptTotal(*place, 0, 0, Usage())
        found[place] = KeptTotal(*place, before.n_results + 1, before.n_bytes + size, before.usage.plus(result.usage))
    return [found[place] for place in sorted(found)]


class ResultSelection(msgspec.Struct, frozen=True):
    """Which results are meant: all that pass each condition that is given."""

    before: datetime | None = None
    model: str | None = None
    org_id: str | None = None

    def has(self, result: PaidResult) -> bool:
        """Whether a result is meant."""
        return (
            (self.before is None or result.at < self.before)
            and (self.model is None or result.model == self.model)
            and (self.org_id is None or result.org_id == self.org_id)
        )
