"""Asking until there is an answer, or asking again cannot help.

Each request goes through an `execute`: the extractor's own, or one that has a journal in front and counts.
"""

from collections.abc import Awaitable, Callable

from resources.document_state.reasons import Reason
from resources.extractor.llm.answer import Answer, Outcome
from resources.extractor.llm.model_error import ModelError
from resources.extractor.llm.planning import Call

Execute = Callable[[Call], Awaitable[Answer]]


async def ask(call: Call, execute: Execute, repair: Callable[[Call, str], Call]) -> Answer:
    """The answer to a call: asked once more if its reply was lost, and once more if nobody could read it.

    Args:
        call: what to ask.
        execute: makes one request, or finds its answer.
        repair: the call that tells the model what was wrong with its answer.

    Raises:
        ModelError: there is no answer. `model_malformed` and `model_refused` were paid for.
    """
    answer = await _once_more_if_lost(call, execute)
    if answer.outcome is Outcome.MALFORMED:
        answer = await _once_more_if_lost(repair(call, answer.problem), execute)
    if answer.outcome is Outcome.MALFORMED:
        raise ModelError(Reason.MODEL_MALFORMED, f"Two answers could not be read. {answer.problem}")
    if answer.outcome is Outcome.REFUSED:
        raise ModelError(Reason.MODEL_REFUSED, answer.problem)
    return answer


async def _once_more_if_lost(call: Call, execute: Execute) -> Answer:
    try:
        return await execute(call)
    except ModelError as error:
        if not (error.may_have_cost and error.reason is Reason.MODEL_UNAVAILABLE):
            raise
    return await execute(call)
