"""Calls of a table: what they raise is ours, and none of them is made in an event loop's thread."""

import asyncio
import itertools
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError

from resources.aws.client import CONNECTIONS, open_client
from resources.aws.location import AwsLocation
from resources.aws.trouble import Trouble, trouble_of
from resources.records.backend import BackendCorruptError, BackendError, BackendUnavailableError
from resources.records.dynamodb.item import DamagedItemError

Thing = TypeVar("Thing")
Result = TypeVar("Result")

# Single calls have threads of their own: a heartbeat never waits behind a load of thousands.
_SINGLE = 4
_BULK = CONNECTIONS - _SINGLE

_TRIED_FOR = 8.0  # seconds; a heartbeat that was held up tries once more within its lease
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0

_MISSING = "The table or its index does not exist. Make it with `ingest state create`, or correct the name."
_MAKING_INDEX = "An index is still being made. Trying again later can help."


class TableCalls:
    """A table and the threads its calls are made in. The client is made by the first call. For many threads at once."""

    def __init__(self, location: AwsLocation) -> None:
        self.table = location.name
        self.uri = location.uri
        self._location = location
        self._lock = threading.Lock()
        self._made: Any = None
        self._single = ThreadPoolExecutor(_SINGLE, "dynamodb")
        self._bulk = ThreadPoolExecutor(_BULK, "dynamodb-bulk")

    async def one(self, do: Callable[[], Result]) -> Result:
        """Do one thing in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._single, do)

    async def each(self, do: Callable[[Thing], Result], things: Sequence[Thing]) -> list[Result]:
        """Do the same with each thing, many at once; the results in their order.

        After an error nothing more is begun, and it is raised when nothing is under way any more: who reads then reads
        what stays.
        """
        if len(things) == 1:
            return [await self.one(lambda: do(things[0]))]
        results: dict[int, Result] = {}
        errors: list[BaseException] = []
        remaining = iter(enumerate(things))  # `next` on it is atomic

        def work() -> None:
            try:
                for number, thing in remaining:
                    results[number] = do(thing)
                    if errors:
                        return
            except BaseException as error:  # noqa: BLE001 - raised below
                errors.append(error)

        loop = asyncio.get_running_loop()
        try:
            await asyncio.gather(*(loop.run_in_executor(self._bulk, work) for _ in range(min(_BULK, len(things)))))
        except asyncio.CancelledError as error:
            errors.append(error)
            raise
        if errors:
            raise errors[0]
        return [results[number] for number in range(len(things))]

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
                    raise BackendUnavailableError(self.uri, f"{about}: the answer is not DynamoDB's.")
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

    async def close(self) -> None:
        """Wait for what is under way, and give back threads and connections."""
        for pool in (self._single, self._bulk):
            await asyncio.to_thread(pool.shutdown)
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
        if about:
            message = f"{about}: {message}"
        return BackendUnavailableError(self.uri, message) if can_heal else BackendError(self.uri, message)


def pauses() -> Iterator[float]:
    """Pauses before further tries, in seconds: growing, and left to chance, so that many do not come back at once."""
    end = time.monotonic() + _TRIED_FOR
    for number in itertools.count():
        if time.monotonic() >= end:
            return
        yield random.uniform(0.5, 1.0) * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**number)  # noqa: S311
