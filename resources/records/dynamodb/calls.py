"""Calls of a table: they block, try again where that helps, and what they raise is ours."""

import itertools
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError

from resources.aws.client import open_client
from resources.aws.location import AwsLocation
from resources.aws.trouble import Trouble, trouble_of
from resources.records.backend import BackendCorruptError, BackendError, BackendUnavailableError
from resources.records.dynamodb.item import DamagedItemError

Thing = TypeVar("Thing")
Result = TypeVar("Result")

_TRIED_FOR = 8.0  # seconds; a heartbeat that was held up tries once more within its lease
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0

_MISSING = "The table or its index does not exist. Make it with `ingest state create`, or correct the name."
_MAKING_INDEX = "An index is still being made. Trying again later can help."


class TableCalls:
    """Calls of one table. The client is made by the first call. For many threads at once."""

    def __init__(self, location: AwsLocation) -> None:
        self.table = location.name
        self.uri = location.uri
        self._location = location
        self._lock = threading.Lock()
        self._made: Any = None

    def call(
        self, operation: str, about: str = "", tolerated: Collection[str] = (), **parameters: Any
    ) -> dict[str, Any] | None:
        """Make a call and wait for it; None if it is refused for a tolerated reason.

        After throttling or a broken line it is made again for some seconds. boto3 itself gives up soon, and after some
        35 broken lines at once altogether (measured).

        Raises:
            BackendUnavailableError: trying again later can help.
            BackendError: it cannot.
        """
        tries = pauses()
        while True:
            try:
                answer: dict[str, Any] = getattr(self._client(), operation)(**parameters)
            except (ClientError, BotoCoreError) as error:
                trouble = trouble_of(error)
                if trouble.code in tolerated:
                    return None
                # A line that broke is no news to a conditional write: it finds its own write id.
                can_repeat = trouble.throttled or isinstance(error, ConnectionClosedError)
                pause = next(tries, None) if can_repeat else None
                if pause is None:
                    raise self._error(trouble, about) from error
                time.sleep(pause)
            else:
                headers = answer["ResponseMetadata"]["HTTPHeaders"]
                if "amz-json" not in headers.get("content-type", ""):
                    # Something between us and DynamoDB, whose page must not pass for an empty answer.
                    raise BackendUnavailableError(self.uri, _told("The answer is not DynamoDB's.", about))
                return answer

    def ask(self, operation: str, about: str = "", **parameters: Any) -> dict[str, Any]:
        """Make a call of which no refusal is tolerated; see `call`."""
        answer = self.call(operation, about, **parameters)
        assert answer is not None
        return answer

    def reading(self, decode: Callable[[Thing], Result], thing: Thing) -> Result:
        """Decode what was read.

        Raises:
            BackendCorruptError: it cannot be.
        """
        try:
            return decode(thing)
        except DamagedItemError as error:
            raise BackendCorruptError(self.uri, str(error)) from error

    def close(self) -> None:
        """Give back the connections."""
        with self._lock:
            if self._made is not None:
                self._made.close()

    def _client(self) -> Any:
        with self._lock:
            if self._made is None:
                try:
                    self._made = open_client(self._location)
                except ValueError as error:
                    raise BackendError(self.uri, f"{error}.") from error
            return self._made

    def _error(self, trouble: Trouble, about: str) -> BackendError:
        message, can_heal = trouble.message, trouble.can_heal
        if trouble.code == "ResourceNotFoundException" or "specified index" in message:
            message = _MISSING
        elif "backfilling" in message:
            message, can_heal = _MAKING_INDEX, True
        kind = BackendUnavailableError if can_heal else BackendError
        return kind(self.uri, _told(message, about))


def _told(message: str, about: str) -> str:
    return f"{about}: {message}" if about else message


def pauses() -> Iterator[float]:
    """Pauses before further tries, in seconds: growing, and left to chance, so that many do not come back at once."""
    end = time.monotonic() + _TRIED_FOR
    for number in itertools.count():
        if time.monotonic() >= end:
            return
        yield random.uniform(0.5, 1.0) * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**number)  # noqa: S311
