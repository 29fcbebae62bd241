"""What can go wrong with a call, as reasons of ours: no message carries a key, no library's exception gets out."""

import os
import re

from resources.document_state.reasons import Reason
from resources.extractor.extractor import ExtractionError

_LONGEST = 300
_SECRET_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
# What looks like a key although the environment does not know it: a provider may repeat a part of it.
_LOOKS_SECRET = re.compile(
    r"(?i:\bbearer)\s+(?=\S*[\d*])\S+|\b(?:sk|pk|gsk|key|api)[-_](?=\S*[\d*])[-_A-Za-z0-9*.]{8,}"
    r"|\b(?:AKIA|ASIA|ABSK)[A-Za-z0-9+/=]{12,}|//[^/@\s]+@"
)
_SHORTEST_SECRET = 6
_CONTENT_FILTERS = re.compile(r"(?i)content[ _](?:filter|policy|management)|responsible_?ai|moderation")
# A provider that says so took the call and did not finish it, or nobody knows: 503 and 529 say that it did not take it.
_TAKEN = (408, 424, 500, 502, 504)


class ModelError(ExtractionError):
    """A call that brought no answer.

    `may_have_cost` says whether the model may have answered all the same, and been paid for it: the reply was lost, or
    it took too long. `is_busy` says that the provider answered, but takes no calls for now: for `retry_after` seconds,
    if it said so.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        may_have_cost: bool = False,
        is_busy: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(reason, message)
        self.may_have_cost = may_have_cost
        self.is_busy = is_busy
        self.retry_after = retry_after


def model_error(model: str, error: Exception) -> ModelError:
    """What an exception of pydantic-ai, openai or botocore means.

    To be raised outside of the `except` that caught it: a traceback shows what an exception was raised in.
    """
    reason = _reason_of(error)
    if reason is Reason.INTERNAL_ERROR:
        return ModelError(reason, f"{model}: {type(error).__name__}: {cleaned(str(error))}")
    return ModelError(
        reason,
        f"{model}: {cleaned(_words(error))}",
        may_have_cost=_may_have_cost(error),
        is_busy=_is_busy(error),
        retry_after=getattr(error, "retry_after", None),
    )


def _reason_of(error: Exception) -> Reason:
    from botocore.exceptions import BotoCoreError
    from pydantic_ai import exceptions as ai

    if isinstance(error, ai.ModelRequestRejectedError) and _names_a_filter(error):
        return Reason.MODEL_REFUSED
    # The first that fits: a class stands before those it is one of.
    reasons: tuple[tuple[type[Exception], Reason], ...] = (
        (ai.ModelRateLimitError, Reason.MODEL_THROTTLED),
        (ai.ModelContextWindowExceededError, Reason.CONTEXT_TOO_LONG),
        (ai.ModelQuotaExceededError, Reason.MODEL_ACCESS),
        (ai.ModelAuthenticationError, Reason.MODEL_ACCESS),
        (ai.ModelNotFoundError, Reason.MODEL_ACCESS),
        (ai.ModelRequestRejectedError, Reason.MODEL_REJECTED),
        (ai.ModelConnectionError, Reason.MODEL_UNAVAILABLE),
        (ai.ModelRequestTimeout, Reason.MODEL_UNAVAILABLE),
        (ai.ModelUnavailableError, Reason.MODEL_UNAVAILABLE),
        (ai.ModelServerError, Reason.MODEL_UNAVAILABLE),
        (ai.ModelHTTPError, Reason.MODEL_UNAVAILABLE),
        # A reply that is none of its protocol.
        (ai.ModelAPIError, Reason.MODEL_MALFORMED),
        (ai.UnexpectedModelBehavior, Reason.MODEL_MALFORMED),
        # No key, no region, no credentials.
        (ai.UserError, Reason.MODEL_ACCESS),
        (BotoCoreError, Reason.MODEL_ACCESS),
    )
    return next((reason for kind, reason in reasons if isinstance(error, kind)), Reason.INTERNAL_ERROR)


def _is_busy(error: Exception) -> bool:
    """Whether it is 429, 503 or what Bedrock calls so."""
    from pydantic_ai import exceptions as ai

    return isinstance(error, ai.ModelRateLimitError | ai.ModelUnavailableError)


def _may_have_cost(error: Exception) -> bool:
    """Whether a request was sent, and nothing came back that says it was not taken."""
    from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError
    from pydantic_ai import exceptions as ai

    if isinstance(error, ai.ModelConnectionError):
        never_sent = isinstance(error.__cause__, ConnectTimeoutError | EndpointConnectionError)
        return not never_sent and error.phase not in {"pool", "connect"}
    if isinstance(error, ai.ModelHTTPError):
        return error.status_code in _TAKEN
    return isinstance(error, ai.ModelAPIError | ai.UnexpectedModelBehavior)


def cleaned(text: str) -> str:
    """The text in one line, short, and without any secret of this process's environment or what looks like one."""
    for name, value in os.environ.items():
        if _SECRET_NAMES.search(name) and len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    return " ".join(_LOOKS_SECRET.sub("***", text).split())[:_LONGEST]


def _words(error: Exception) -> str:
    """What a provider said, without the rest of its reply; else what the exception says."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("Error") or body.get("error") or body
        message = inner.get("Message") or inner.get("message") if isinstance(inner, dict) else inner
        code = getattr(error, "provider_error_code", None) or getattr(error, "status_code", "")
        return f"{code} {message or 'no message'}".strip()
    return str(error)


def _names_a_filter(error: Exception) -> bool:
    said = (getattr(error, "provider_error_code", ""), getattr(error, "provider_error_type", ""), _words(error))
    return any(_CONTENT_FILTERS.search(str(words)) for words in said)
