"""Entries that a language model is paid for: estimated, admitted or held back as a whole batch, journaled call by call.

    what is journaled already ─▶ calls for the rest ─▶ worst case reserved, or the batch held back
      ─▶ each call: begun in the journal, made, its answers journaled ─▶ settled with what it cost ─▶ entries

Wherever the process dies, an answer that arrived is in the journal, and what may have been spent is in the ledger.
"""

import asyncio
import itertools
import math
from collections.abc import Callable, Sequence

import msgspec

from ingest_assets.engine.entry_finding import Bill, Chunked, EntryFinder, Finding
from ingest_assets.engine.paid_batch import PaidBatch
from ingest_assets.engine.progress import Milestone, Progress
from ingest_assets.engine.purse import Purse
from resources.artifact_store.paid_results.call_log import Call as BegunCall
from resources.artifact_store.paid_results.paid_result import Answer as KeptAnswer
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.artifact_store.paid_results.usage import Usage as PaidUsage
from resources.clock import utc_now
from resources.document_state.ingest_jobs import JobStage
from resources.document_state.reasons import Reason
from resources.extractor.extractor import ExtractionError
from resources.extractor.llm.answer import Answer, ChunkAnswer, Outcome
from resources.extractor.llm.asking import ask
from resources.extractor.llm.llm_extractor import LlmExtractor
from resources.extractor.llm.model_error import ModelError
from resources.extractor.llm.planning import Call

# How many calls are begun for each that may be under way: the journal's write must not keep the model waiting.
_AHEAD = 1.25


class PaidEntries(EntryFinder):
    """Finds entries by paid calls. Belongs to one event loop."""

    def __init__(
        self,
        extractor: LlmExtractor,
        journal: PaidResultJournal,
        new_purse: Callable[[], Purse],
        progress: Progress,
    ) -> None:
        self._extractor = extractor
        self._journal = journal
        self._new_purse = new_purse
        self._progress = progress
        # A call is begun when it is about to be sent: what was begun and brought no answer counts as spent.
        self._slots = asyncio.Semaphore(math.ceil(extractor.options.concurrency * _AHEAD))

    async def find(self, batch: Sequence[Chunked]) -> list[Finding]:
        """See EntryFinder. A document whose answers are all journaled costs nothing, and is never held back."""
        self._progress.enters(JobStage.ESTIMATING)
        paid = PaidBatch(batch, self._extractor)
        await self._look_up(paid)
        self._tell_progress(paid)
        paid.plan()
        if paid.calls:
            await self._ask(paid)
        self._tell_progress(paid)
        return [self._finding(paid, chunked) for chunked in batch]

    async def _look_up(self, paid: PaidBatch) -> None:
        """Take what is journaled, and note which documents use it."""
        found = await self._journal.find(paid.keys)
        paid.take({key: _decoded(result.body) for key, result in found.items()})
        known = paid.known_keys().items()
        await asyncio.gather(*(self._journal.adopt(document_id, keys) for document_id, keys in known if keys))

    async def _ask(self, paid: PaidBatch) -> None:
        """Make the batch's calls, if they are admitted.

        A repetition for which others left no room is asked for once more when all that was reserved is settled: only
        who holds nothing may wait.
        """
        if unpaid := await self._ask_for(paid, paid.lanes()):
            await self._ask_for(paid, unpaid)

    async def _ask_for(self, paid: PaidBatch, lanes: Sequence[Sequence[Call]]) -> list[Sequence[Call]]:
        """Reserve for calls and make them; those that a ceiling has stopped, as lanes."""
        purse = self._new_purse()
        calls = [call for lane in lanes for call in lane]
        micro_usd = sum(self._extractor.micro_usd(call.worst_case) for call in calls)
        refusal = await purse.fill(micro_usd)
        await self._progress.estimated(micro_usd, refusal.message if refusal else "")
        if refusal is not None:
            for call in calls:
                paid.fail(call, ExtractionError(Reason.SPEND_CEILING, refusal.message))
            return []
        self._progress.enters(JobStage.EXTRACTING)
        try:
            # A call that fails does not cancel the others: they are under way, and may have been paid for.
            ends = await asyncio.gather(*(self._make(paid, purse, lane) for lane in lanes), return_exceptions=True)
        finally:
            await purse.empty()
        unpaid = []
        for end in ends:
            if isinstance(end, BaseException):
                raise end
            if end:
                unpaid.append(end)
        return unpaid

    async def _make(self, paid: PaidBatch, purse: Purse, lane: Sequence[Call]) -> Sequence[Call]:
        """Make calls one after the other; after one that fails, the next ones are not made.

        Returns:
            The calls that a ceiling has stopped.
        """
        for n_made, call in enumerate(lane, 1):
            left = lane[n_made:]
            try:
                answer = await self._answer(paid, purse, call)
            except ExtractionError as error:
                for unanswered in (call, *left):
                    paid.fail(unanswered, error)
                self._tell_progress(paid)
                return (call, *left) if error.reason is Reason.SPEND_CEILING else ()
            paid.take(answer.by_chunk)
            self._tell_progress(paid)
            if left and not await self._tell(paid, paid.payer_of(call)):
                for unmade in left:
                    paid.fail(unmade, ExtractionError(Reason.INTERNAL_ERROR, "It is in another worker's hands."))
                return ()
        return ()

    def _tell_progress(self, paid: PaidBatch) -> None:
        for _ in range(paid.n_newly_settled()):
            self._progress.reaches(Milestone.EXTRACTED)

    async def _tell(self, paid: PaidBatch, chunked: Chunked) -> bool:
        """Tell a document that is to be told what its first chunks brought; whether to go on."""
        assert chunked.tell is not None
        n = paid.n_answered(chunked)
        return await chunked.tell(self._found(paid, chunked, n), n)

    async def _answer(self, paid: PaidBatch, purse: Purse, call: Call) -> Answer:
        attempts = itertools.count()

        async def execute(attempt: Call) -> Answer:
            return await self._attempt(paid, purse, attempt, f"{attempt.journal_key}/{next(attempts)}")

        return await ask(call, execute, self._extractor.repair)

    async def _attempt(self, paid: PaidBatch, purse: Purse, call: Call, call_id: str) -> Answer:
        """One request: begun durably before it is sent; what it answered and cost durable before it is used.

        One without an answer that may have been billed stays as it was begun, at its worst case.
        """
        begun = BegunCall(call_id, paid.org_of(call), self._extractor.model, self._extractor.micro_usd(call.worst_case))
        async with self._slots:
            reservation_id = await purse.begin(begun)
            try:
                answer = await self._extractor.execute(call)
            except ModelError as error:
                if not error.may_have_cost:
                    await self._journal.failed(reservation_id, call_id, PaidUsage())
                raise
        usage = PaidUsage(
            answer.usage.input_tokens, answer.usage.output_tokens, self._extractor.micro_usd(answer.usage)
        )
        paid.pay(call, usage)
        if answer.outcome is not Outcome.FOUND:
            await self._journal.failed(reservation_id, call_id, usage)
            return answer
        answers = [
            KeptAnswer(key, msgspec.json.encode(found), paid.documents_of(key))
            for key, found in answer.by_chunk.items()
        ]
        kept = await self._journal.record(reservation_id, begun, answers, usage, utc_now())
        # Where somebody else's answer was first, all go on with that one.
        first = {key: _decoded(result.body) for key, result in kept.items()}
        return msgspec.structs.replace(answer, by_chunk={**answer.by_chunk, **first})

    def _finding(self, paid: PaidBatch, chunked: Chunked) -> Finding:
        error = paid.failure_of(chunked)
        if error is not None:
            bill = paid.bills.get(chunked.document_id, Bill())
            return Finding(reason=error.reason, error=str(error), bill=bill)
        return self._found(paid, chunked, len(chunked.chunks))

    def _found(self, paid: PaidBatch, chunked: Chunked, n: int) -> Finding:
        """What the first `n` chunks of a document brought, all of which are answered."""
        found = self._extractor.entries_of(chunked.document_id, chunked.chunks[:n], paid.answers_of(chunked))
        bill = paid.bills.get(chunked.document_id, Bill())
        return Finding(found.entries, _dropped(found.n_unquoted), bill=bill)


def _decoded(body: bytes) -> ChunkAnswer:
    return msgspec.json.decode(body, type=ChunkAnswer)


def _dropped(n: int) -> tuple[str, ...]:
    if not n:
        return ()
    findings = "1 finding of the model was" if n == 1 else f"{n} findings of the model were"
    return (f"{findings} dropped: the quotation is not in the chunk.",)
