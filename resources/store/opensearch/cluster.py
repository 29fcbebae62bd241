"""Requests to one cluster: the driver, what is sent again and when, and many rows in one request."""

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from opensearchpy import OpenSearch
from opensearchpy.exceptions import TransportError

from resources.store.opensearch.address import OpenSearchConfig, client_options, credentials
from resources.store.opensearch.errors import SEND_AGAIN, domain_error

# OpenSearch advises requests of 5 to 15 MB; what one holds beyond that is a single large row.
_BYTES_A_REQUEST = 5_000_000
_ROWS_A_REQUEST = 1_000
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


class Action(NamedTuple):
    """One row to write: what to do, and the row as JSON."""

    what: bytes
    row: bytes


class Outcome(NamedTuple):
    """What became of one row."""

    status: int
    kind: str = ""
    reason: str = ""


class _Client(NamedTuple):
    driver: OpenSearch
    auth: tuple[str, str] | None
    process: int


class Cluster:
    """Sends requests. Safe for threads; a forked child has a driver of its own.

    What the server refused for want of room (429) or of a shard (503) is sent again, with pauses that double. Anything
    else is not: a request whose answer is lost may have been carried out.
    """

    def __init__(self, store: str, config: OpenSearchConfig) -> None:
        self.store = store
        self.url = config.url
        self._config = config
        self._client: _Client | None = None

    def ask(self, request: Callable[[OpenSearch], Any]) -> Any:
        """The server's answer.

        Raises:
            StoreError: it is an error, or there is none.
            ValueError: what was sent cannot be held.
        """
        for last in self._attempts():
            try:
                return request(self._driver())
            except TransportError as error:
                if error.status_code not in SEND_AGAIN or last:
                    raise domain_error(self.store, self.url, error) from error
        raise AssertionError  # the last attempt returns or raises

    def bulk(self, actions: Sequence[Action], index: str, *, refresh: bool = False) -> list[Outcome]:
        """Write rows into what `index` is an alias of; an outcome each, in order.

        The alias must exist (`require_alias`): an index that was dropped meanwhile is not made again by a row.
        """
        outcomes: list[Outcome] = []
        for batch in _batches(actions):
            outcomes += self._bulk(batch, index, "true" if refresh else "false")
        return outcomes

    def _bulk(self, actions: Sequence[Action], index: str, refresh: str) -> list[Outcome]:
        outcomes = [Outcome(0)] * len(actions)
        todo = list(range(len(actions)))
        for last in self._attempts():
            answer = self._send([actions[i] for i in todo], index, refresh)
            for i, item in zip(todo, answer["items"], strict=True):
                outcomes[i] = _outcome(item)
            todo = [i for i in todo if outcomes[i].status in SEND_AGAIN]
            if not todo or last:
                break
        return outcomes

    def _send(self, actions: Sequence[Action], index: str, refresh: str) -> Any:
        body = b"".join(part + b"\n" for action in actions for part in action)
        return self.ask(lambda driver: driver.bulk(body=body, index=index, refresh=refresh, require_alias="true"))

    def _attempts(self) -> Iterator[bool]:
        """One turn for each attempt, with a pause between them; True for the last."""
        pause = _FIRST_PAUSE
        for attempt in range(1, self._config.attempts + 1):
            yield attempt == self._config.attempts
            # Half of it by chance, so that many writers do not come back at the same moment.
            time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - not a secret
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _driver(self) -> OpenSearch:
        auth, process = credentials(self.store, self._config), os.getpid()
        client = self._client
        if client is None or (client.auth, client.process) != (auth, process):
            client = _Client(OpenSearch(**client_options(self._config, auth)), auth, process)
            self._client = client
        return client.driver


def encoded(value: object) -> bytes:
    """The value as JSON."""
    return msgspec.json.encode(value)


def _batches(actions: Sequence[Action]) -> Iterator[Sequence[Action]]:
    start = size = 0
    for i, action in enumerate(actions):
        n_bytes = len(action.what) + len(action.row)
        if i > start and (size + n_bytes > _BYTES_A_REQUEST or i - start == _ROWS_A_REQUEST):
            yield actions[start:i]
            start, size = i, 0
        size += n_bytes
    if start < len(actions):
        yield actions[start:]


def _outcome(item: dict[str, Any]) -> Outcome:
    [result] = item.values()
    error = result.get("error")
    if error is None:
        return Outcome(result["status"])
    cause = error.get("caused_by") or {}
    return Outcome(result["status"], error["type"], f"{error['reason']} {cause.get('reason', '')}".strip())
