"""Making one call: paced, sent again while the provider refuses to take it, and read."""

import asyncio
import logging
import time

from resources.document_state.reasons import Reason
from resources.extractor.llm.answer import Answer, MalformedAnswerError, Outcome, Usage, read_answer
from resources.extractor.llm.endpoint import Endpoint, Reply
from resources.extractor.llm.model_error import ModelError
from resources.extractor.llm.options import LlmOptions
from resources.extractor.llm.pacer import Pacer
from resources.extractor.llm.planning import Call
from resources.extractor.llm.tokens import TokenCounter

_logger = logging.getLogger(__name__)
# How long a call is kept alive while a provider throttles, before its document gives way to others.
_PATIENCE_SECONDS = 300.0
_PAUSES_SECONDS = (1.0, 2.0, 4.0)


class Caller:
    """Makes the calls of one process: one pacer, one endpoint. Belongs to one event loop."""

    def __init__(self, model: str, options: LlmOptions) -> None:
        self._model = model
        self._options = options
        self._counter = TokenCounter(model)
        self._endpoint = Endpoint(model, options)
        self._pacer = Pacer(options.concurrency, options.requests_per_minute, options.tokens_per_minute)
        self._has_succeeded = False
        self._no_access: ModelError | None = None

    async def execute(self, call: Call) -> Answer:
        """Make one call. Only requests that the provider did not take are sent again.

        Raises:
            ModelError: no answer. Where it `may_have_cost`, one was perhaps made and lost.
        """
        reply = await self._sent(call)
        usage = self._usage(call, reply)
        if reply.finish_reason == "content_filter":
            problem = f"{self._model} would not answer: its content filter, or the model itself, refused."
            return Answer(call.journal_key, Outcome.REFUSED, usage, problem=problem)
        if reply.finish_reason == "length":
            problem = f"It was cut off after {self._options.max_tokens} tokens: give fewer and shorter items."
            return Answer(call.journal_key, Outcome.MALFORMED, usage, problem=problem)
        try:
            found = read_answer(reply.text, len(call.chunk_keys))
        except MalformedAnswerError as error:
            return Answer(call.journal_key, Outcome.MALFORMED, usage, problem=str(error))
        return Answer(call.journal_key, Outcome.FOUND, usage, dict(zip(call.chunk_keys, found, strict=True)))

    async def close(self) -> None:
        """Close connections."""
        await self._endpoint.close()

    async def _sent(self, call: Call) -> Reply:
        give_up_at = time.monotonic() + _PATIENCE_SECONDS
        pauses = iter(_PAUSES_SECONDS)
        while True:
            # Providers count the ceiling of an answer when they count tokens a minute.
            async with self._pacer.turn(call.estimated_input_tokens + call.worst_case.output_tokens) as began:
                try:
                    reply = await self._asked(call)
                except ModelError as error:
                    if error.is_busy:
                        pause = self._pacer.throttled(began, error.retry_after)
                        if time.monotonic() + pause > give_up_at:
                            raise
                        _logger.info("%s takes no calls for now: none is made for %.1f s", self._model, pause)
                        continue
                    if error.reason is not Reason.MODEL_UNAVAILABLE or error.may_have_cost:
                        raise
                    seconds = next(pauses, None)
                    if seconds is None:
                        raise
                else:
                    self._pacer.answered()
                    return reply
            await asyncio.sleep(seconds)

    async def _asked(self, call: Call) -> Reply:
        """One request; none at all once the provider has shown that it lets nobody in."""
        if self._no_access is not None:
            raise ModelError(Reason.MODEL_ACCESS, str(self._no_access))
        try:
            reply = await self._endpoint.ask(call.prompt)
        except ModelError as error:
            if error.reason is Reason.MODEL_ACCESS and not self._has_succeeded:
                self._no_access = error
            raise
        self._has_succeeded = True
        return reply

    def _usage(self, call: Call, reply: Reply) -> Usage:
        """What the provider counted; what we estimate, where it does not say."""
        return Usage(
            reply.usage.input_tokens or call.estimated_input_tokens,
            reply.usage.output_tokens or self._counter.estimate([reply.text])[0],
        )
