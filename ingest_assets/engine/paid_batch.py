"""A batch on its way to being answered: which keys it needs, which calls that takes, what has come. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ingest_assets.engine.entry_finding import Bill, Chunked
from resources.artifact_store.paid_results.usage import Usage
from resources.extractor.extractor import ExtractionError
from resources.extractor.llm.answer import ChunkAnswer
from resources.extractor.llm.llm_extractor import LlmExtractor
from resources.extractor.llm.planning import Call


class PaidBatch:
    """What is wanted, and what is known of it.

    Attributes:
        calls: what is to be asked; a chunk that stands in several documents is asked for once.
        bills: what was paid, by the document whose chunks were asked for.
    """

    def __init__(self, documents: Sequence[Chunked], extractor: LlmExtractor) -> None:
        self._documents = documents
        self._extractor = extractor
        self._keys_of = {each.document_id: extractor.chunk_keys(each.org_id, each.chunks) for each in documents}
        self._documents_of: dict[str, list[Chunked]] = defaultdict(list)
        for each in documents:
            for key in dict.fromkeys(self._keys_of[each.document_id]):
                self._documents_of[key].append(each)
        self._answers: dict[str, ChunkAnswer] = {}
        self._failures: dict[str, ExtractionError] = {}
        self._unsettled = {document_id: set(keys) for document_id, keys in self._keys_of.items() if keys}
        self._n_newly_settled = len(documents) - len(self._unsettled)
        self.calls: list[Call] = []
        self.bills: dict[str, Bill] = {}

    @property
    def keys(self) -> list[str]:
        """Every key that is needed, once."""
        return list(self._documents_of)

    def known_keys(self) -> dict[str, list[str]]:
        """For each document the keys whose answers are known."""
        return {
            document_id: [key for key in dict.fromkeys(keys) if key in self._answers]
            for document_id, keys in self._keys_of.items()
        }

    def documents_of(self, key: str) -> tuple[str, ...]:
        """The documents that need an answer."""
        return tuple(each.document_id for each in self._documents_of[key])

    def org_of(self, call: Call) -> str:
        """For whom a call is made."""
        return self.payer_of(call).org_id

    def payer_of(self, call: Call) -> Chunked:
        """The document whose chunks a call was planned for: the first that needs them."""
        return self._documents_of[call.chunk_keys[0]][0]

    def take(self, answers: Mapping[str, ChunkAnswer]) -> None:
        """Note answers."""
        self._answers.update(answers)
        self._settle(answers)

    def fail(self, call: Call, error: ExtractionError) -> None:
        """Note why a call brought none."""
        self._failures.update(dict.fromkeys(call.chunk_keys, error))
        self._settle(call.chunk_keys)

    def n_newly_settled(self) -> int:
        """How many documents have got the last of their answers, or of its failures, since this was asked before."""
        n, self._n_newly_settled = self._n_newly_settled, 0
        return n

    def plan(self) -> None:
        """Decide which calls bring what is not known."""
        answered = set(self._answers)
        for each in self._documents:
            calls = self._extractor.plan(each.org_id, each.chunks, answered)
            self.calls += calls
            answered.update(key for call in calls for key in call.chunk_keys)

    def lanes(self) -> list[list[Call]]:
        """The calls, those together that are to be made one after the other: a conversation's."""
        lanes: list[list[Call]] = []
        of_conversation: dict[str, list[Call]] = {}
        for call in self.calls:
            payer = self.payer_of(call)
            if payer.tell is None:
                lanes.append([call])
            elif payer.document_id in of_conversation:
                of_conversation[payer.document_id].append(call)
            else:
                lanes.append([call])
                of_conversation[payer.document_id] = lanes[-1]
        return lanes

    def n_answered(self, chunked: Chunked) -> int:
        """How many of a document's first chunks have their answers."""
        keys = self._keys_of[chunked.document_id]
        return next((n for n, key in enumerate(keys) if key not in self._answers), len(keys))

    def pay(self, call: Call, usage: Usage) -> None:
        """Note what one request cost."""
        document_id = self.payer_of(call).document_id
        bill = Bill(1, usage.input_tokens, usage.output_tokens, usage.micro_usd)
        self.bills[document_id] = self.bills.get(document_id, Bill()) + bill

    def answers_of(self, chunked: Chunked) -> dict[str, ChunkAnswer]:
        """What is known of a document's chunks, by chunk id."""
        keys = self._keys_of[chunked.document_id]
        return {
            chunk.chunk_id: self._answers[key]
            for chunk, key in zip(chunked.chunks, keys, strict=True)
            if key in self._answers
        }

    def failure_of(self, chunked: Chunked) -> ExtractionError | None:
        """Why an answer the document needs did not come."""
        missing = [key for key in self._keys_of[chunked.document_id] if key not in self._answers]
        return next((self._failures[key] for key in missing if key in self._failures), None)

    def _settle(self, keys: Iterable[str]) -> None:
        for key in keys:
            for each in self._documents_of.get(key, ()):
                unsettled = self._unsettled.get(each.document_id)
                if unsettled is not None:
                    unsettled.discard(key)
                    if not unsettled:
                        del self._unsettled[each.document_id]
                        self._n_newly_settled += 1
