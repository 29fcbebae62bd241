"""What an error of boto3 means: what happened, whether trying again can help, and what to do.

No message of ours repeats what a server said of a signature or key.
"""

import msgspec
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)

_THROTTLED = frozenset(
    {
        "SlowDown", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "TooManyRequests",
        "ProvisionedThroughputExceededException", "RequestLimitExceeded", "LimitExceededException", "503",
        "TransactionConflictException",
    }
)  # fmt: skip
_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "AllAccessDisabled", "UnauthorizedOperation", "403"})
_CREDENTIALS = frozenset(
    {
        "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "ExpiredTokenException", "InvalidToken",
        "UnrecognizedClientException", "InvalidSignatureException", "MissingAuthenticationToken",
        "MissingAuthenticationTokenException", "IncompleteSignature", "InvalidClientTokenId", "RequestTimeTooSkewed",
    }
)  # fmt: skip
_FAILED_THERE = frozenset({"InternalError", "InternalServerError", "RequestTimeout"})
_SERVER_ERROR = 500
_NOT_IMPLEMENTED = 501
_UNAVAILABLE = 503
_LONGEST_MESSAGE = 200


class Trouble(msgspec.Struct, frozen=True):
    """An error in words.

    Attributes:
        message: what happened and what to do, in a sentence or two.
        can_heal: whether trying again can help by itself.
        status: the HTTP status; 0 if there was no answer.
        code: the service's name for it; "" if there was no answer.
        denied: we are known there, and may not do this.
        throttled: it was too much at once.
    """

    message: str
    can_heal: bool
    status: int = 0
    code: str = ""
    denied: bool = False
    throttled: bool = False


def trouble_of(error: ClientError | BotoCoreError) -> Trouble:
    """Say what an error means."""
    if not isinstance(error, ClientError):
        return _without_answer(error)
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    doing = error.operation_name
    can_heal = throttled = False
    if code in _CREDENTIALS:
        message = f"{doing}: the credentials are refused ({code}). Check what boto3 is given."
    elif code in _DENIED:
        message = f"{doing} is not permitted{_said(error)}. Grant this permission; the documentation lists all."
    elif code == "NoSuchBucket":
        message = "The bucket does not exist. Create it, or correct the name."
    elif code in _THROTTLED or status == _UNAVAILABLE:
        message = f"{doing} is throttled ({code}). Trying again later can help."
        can_heal = throttled = True
    elif (status >= _SERVER_ERROR and status != _NOT_IMPLEMENTED) or code in _FAILED_THERE:
        message, can_heal = f"{doing}: the server failed ({code}). Trying again later can help.", True
    else:
        message = f"{doing} failed: {code}{_said(error)}."
    return Trouble(message, can_heal, status, code, denied=code in _DENIED, throttled=throttled)


def _without_answer(error: BotoCoreError) -> Trouble:
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return Trouble("No credentials were found. Give them by boto3's ways, such as AWS_PROFILE.", can_heal=False)
    if isinstance(error, NoRegionError):
        what_to_do = "Set AWS_DEFAULT_REGION or AWS_REGION, or add ?region= to the URI."
        return Trouble(f"No region is set. {what_to_do}", can_heal=False)
    if isinstance(error, ConnectionError | HTTPClientError | IncompleteReadError):
        return Trouble(f"No answer ({type(error).__name__}). Trying again later can help.", can_heal=True)
    return Trouble(f"{type(error).__name__}: {str(error)[:_LONGEST_MESSAGE]}", can_heal=False)


def _said(error: ClientError) -> str:
    message = " ".join(str(error.response.get("Error", {}).get("Message", "")).split())
    return f" ({message[:_LONGEST_MESSAGE].rstrip('.')})" if message else ""
