"""Which calls a document's chunks take: a pure function, so that they can be priced before the first is made.

Grouping must not defeat reuse. A call carries several chunks, because the instructions and the schema are paid for in
each; but which chunks meet in a call depends on the document, and on what is known already. So answers are kept by
chunk: `chunk_key` is made of org, model, versions and the chunk's text, of no document and no neighbour. A chunk whose
key is answered is left out of every later call, in whichever document of the org it stands. Neighbours in a call may
colour an answer a little; the first answer is the one that counts.

The call has a key of its own, over its whole prompt, for what belongs to the call and not to a chunk: its usage, an
answer that could not be read, and finding an answer that was kept when its chunks' keys were not yet.
"""

from collections.abc import Collection, Sequence
from functools import cached_property

import msgspec

from resources.artifact_store.artifact import Chunk, short_hash
from resources.extractor.llm.answer import SCHEMA_VERSION, Usage, answer_schema
from resources.extractor.llm.options import LlmOptions
from resources.extractor.llm.prompt import INSTRUCTIONS, PROMPT_VERSION, prompt_of, repair_prompt
from resources.extractor.llm.tokens import TokenCounter

# What the limits in the prompt come to in a chunk that is full of knowledge; a call has no more chunks than fit. A turn
# of a conversation is mostly short and seldom full: each of its tokens may come back in a statement, in quotations and
# in a name.
_OUTPUT_PER_CHUNK = 512
_OUTPUT_PER_TURN = 64
_OUTPUT_PER_TOKEN_OF_TURN = 5
_FENCE = 40
# What providers add around instructions, prompt and schema: roles, markers, the preamble of a tool.
_FRAMING = 32
_FRAMING_AT_MOST = 512


class Call(msgspec.Struct, frozen=True):
    """One request to the model.

    `journal_key` is the same whenever org, model, versions and prompt are. `worst_case` is what this request can use
    at most; the repair of its answer, if there has to be one, is a call of its own.
    """

    journal_key: str
    chunk_keys: tuple[str, ...]
    prompt: str
    estimated_input_tokens: int
    worst_case: Usage


class Planner:
    """Plans calls for one model."""

    def __init__(self, model: str, options: LlmOptions) -> None:
        self._model = model
        self._options = options
        self._counter = TokenCounter(model)

    def chunk_keys(self, org_id: str, chunks: Sequence[Chunk]) -> list[str]:
        """The key under which the answer to each chunk is kept, in order."""
        return [self._key("chunk", org_id, chunk.text) for chunk in chunks]

    def plan(self, org_id: str, chunks: Sequence[Chunk], answered: Collection[str] = ()) -> list[Call]:
        """The calls for the chunks whose keys are not `answered`, in their order; a text that occurs twice once."""
        wanted = {
            key: chunk
            for key, chunk in zip(self.chunk_keys(org_id, chunks), chunks, strict=True)
            if key not in answered
        }
        if not wanted:
            return []
        counts = self._counter.estimate([chunk.text for chunk in wanted.values()])
        groups: list[list[str]] = []
        room = room_to_answer = 0
        for (key, chunk), n_tokens in zip(wanted.items(), counts, strict=True):
            n_answer = _answer_tokens(chunk, n_tokens)
            if not groups or n_tokens + _FENCE > room or n_answer > room_to_answer:
                groups.append([])
                room = self._options.input_tokens - self._overhead[0]
                room_to_answer = self._options.max_tokens
            groups[-1].append(key)
            room -= n_tokens + _FENCE
            room_to_answer -= n_answer
        prompts = [prompt_of([wanted[key].text for key in group]) for group in groups]
        return [
            self._call(self._key("call", org_id, prompt), group, prompt)
            for group, prompt in zip(groups, prompts, strict=True)
        ]

    def repair(self, call: Call, problem: str) -> Call:
        """The call that asks again after an answer nobody could read."""
        prompt = repair_prompt(call.prompt, problem)
        return self._call(short_hash("repair", call.journal_key, problem), call.chunk_keys, prompt)

    def _call(self, journal_key: str, keys: Sequence[str], prompt: str) -> Call:
        estimate, at_most = self._overhead
        return Call(
            journal_key,
            tuple(keys),
            prompt,
            estimate + self._counter.estimate([prompt])[0],
            Usage(at_most + self._counter.at_most([prompt])[0], self._options.max_tokens),
        )

    @cached_property
    def _overhead(self) -> tuple[int, int]:
        """Estimate and bound of what every call carries beside its prompt."""
        fixed = [INSTRUCTIONS, msgspec.json.encode(answer_schema()).decode()]
        return (
            sum(self._counter.estimate(fixed)) + _FRAMING,
            sum(self._counter.at_most(fixed)) + _FRAMING_AT_MOST,
        )

    def _key(self, kind: str, org_id: str, text: str) -> str:
        return short_hash(kind, org_id, self._model, str(PROMPT_VERSION), str(SCHEMA_VERSION), text)


def _answer_tokens(chunk: Chunk, n_tokens: int) -> int:
    """What the answer to a chunk is expected to take at most."""
    if chunk.place.turn is None:
        return _OUTPUT_PER_CHUNK
    return min(_OUTPUT_PER_CHUNK, _OUTPUT_PER_TURN + _OUTPUT_PER_TOKEN_OF_TURN * n_tokens)
