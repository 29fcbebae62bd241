"""A bucket, spoken to in conditional requests. Answers that mean different things are told apart; errors are ours.

Requests block; a bucket may be used by many threads at once.
"""

import threading
from enum import Enum
from http import HTTPStatus
from typing import Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from resources.aws.client import open_client
from resources.aws.location import AwsLocation
from resources.aws.trouble import trouble_of
from resources.records.backend import BackendError, BackendUnavailableError

_READINGS = 3
_READ_SECONDS = 8  # a heartbeat must get through a second time within its lease of 30 seconds


class Found(msgspec.Struct, frozen=True):
    """An object as it is now."""

    etag: str
    body: bytes


class NoBody(Enum):
    """Why a GET brought nothing."""

    UNCHANGED = "its ETag is still the one you know"
    ABSENT = "there is no such object"


class Refusal(Enum):
    """Why a conditional PUT wrote nothing, as far as the server knows."""

    CHANGED = HTTPStatus.PRECONDITION_FAILED  # somebody else was first, or our own request before boto3 re-sent it
    GONE = HTTPStatus.NOT_FOUND  # there is nothing to match; SeaweedFS says CHANGED here
    BUSY = HTTPStatus.CONFLICT  # another request for the object is under way; the same PUT may pass next


class Bucket:
    """The objects below the prefix of a location, by their names without it."""

    def __init__(self, location: AwsLocation) -> None:
        """Nothing is opened before it is used."""
        self.uri = location.uri
        self._location = location
        self._lock = threading.Lock()
        self._opened: Any = None

    def get(self, name: str, known: str = "", *, readings: int = _READINGS) -> Found | NoBody:
        """Read an object, unless its ETag is the `known` one; again if its body breaks off, which boto3 does not do.

        Raises:
            BackendError: by what went wrong.
        """
        condition = {"IfNoneMatch": known} if known else {}
        try:
            answer = self._client().get_object(**self._named(name), **condition)
        except (ClientError, BotoCoreError) as error:
            status = _refused(error)
            if status == HTTPStatus.NOT_MODIFIED and known:
                return NoBody.UNCHANGED
            if status == HTTPStatus.NOT_FOUND:
                return NoBody.ABSENT
            raise self._error(name, error) from error
        try:
            return Found(answer["ETag"], answer["Body"].read())
        except BotoCoreError as error:
            if readings == 1:
                raise self._error(name, error) from error
        return self.get(name, known, readings=readings - 1)

    def put(self, name: str, body: bytes, known: str) -> str | Refusal:
        """Write an object if its ETag is the `known` one, or, where that is "", if there is none; its new ETag.

        Raises:
            BackendUnavailableError: it may have been written, or may be yet.
            BackendError: by what went wrong.
        """
        condition = {"IfMatch": known} if known else {"IfNoneMatch": "*"}
        try:
            return str(self._client().put_object(**self._named(name), Body=body, **condition)["ETag"])
        except (ClientError, BotoCoreError) as error:
            status = _refused(error)
            if status in _REFUSALS:
                return Refusal(status)
            raise self._error(name, error) from error

    def list(self, prefix: str) -> dict[str, str]:
        """The ETag of each object whose name begins so.

        Raises:
            BackendError: by what went wrong.
        """
        below = self._location.prefix
        try:
            pages = self._client().get_paginator("list_objects_v2")
            found = pages.paginate(Bucket=self._location.name, Prefix=below + prefix)
            return {entry["Key"][len(below) :]: entry["ETag"] for page in found for entry in page.get("Contents", ())}
        except (ClientError, BotoCoreError) as error:
            raise self._error(prefix, error) from error

    def delete(self, name: str) -> None:
        """Remove an object.

        Raises:
            BackendError: by what went wrong.
        """
        try:
            self._client().delete_object(**self._named(name))
        except (ClientError, BotoCoreError) as error:
            raise self._error(name, error) from error

    def close(self) -> None:
        """Give back the connections. A later use opens new ones."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _client(self) -> Any:
        with self._lock:
            if self._opened is None:
                self._opened = open_client(self._location, read_seconds=_READ_SECONDS)
            return self._opened

    def _named(self, name: str) -> dict[str, str]:
        return {"Bucket": self._location.name, "Key": self._location.prefix + name}

    def _error(self, name: str, error: ClientError | BotoCoreError) -> BackendError:
        trouble = trouble_of(error)
        kind = BackendUnavailableError if trouble.can_heal else BackendError
        return kind(self.uri, f"{name}: {trouble.message}")


_REFUSALS = frozenset(refusal.value for refusal in Refusal)


def _refused(error: ClientError | BotoCoreError) -> int:
    """The status of an answer about the object alone; 0: it is about something else."""
    if not isinstance(error, ClientError):
        return 0
    trouble = trouble_of(error)
    return 0 if trouble.code == "NoSuchBucket" else trouble.status
