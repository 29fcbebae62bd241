"""What one document and one worker are to their clients when nobody else is there: the truth histories are held to."""

from typing import NamedTuple

from tests.linearizability.checker import Operation


class Seen(NamedTuple):
    """A document's record as a reader tells it from others. `tag` names the write that made it; no two share one."""

    tag: str
    version: int
    owner: str
    token: int


class Change(NamedTuple):
    """A conditional write: what the record was when it was read, the tag of the write, and the worker it is for."""

    expected: Seen | None
    tag: str
    worker: str = ""


def document(state: Seen | None, operation: Operation) -> list[Seen | None]:
    """A document: read as it is; changed only by who has read it as it is; a larger token with each claim."""
    if operation.name == "get":
        return [state] if operation.answer == state else []
    change: Change = operation.given
    if operation.returned is not None and not operation.answer:
        return [] if state == change.expected else [state]
    return [_changed(operation.name, change)] if state == change.expected else []


def _changed(name: str, change: Change) -> Seen:
    if name == "create":
        return Seen(change.tag, 1, "", 0)
    assert change.expected is not None
    version, token = change.expected.version + 1, change.expected.token
    if name == "claim":
        return Seen(change.tag, version, change.worker, token + 1)
    return Seen(change.tag, version, "", token)


def worker(dead: bool, operation: Operation) -> list[bool]:
    """A worker: what it holds it may renew until somebody declares it dead, and never again after that."""
    if operation.name == "bury":
        took_effect = operation.returned is None or operation.answer
        return [True] if took_effect else [dead]
    if operation.returned is None:
        return [dead]
    return [dead] if operation.answer is not dead else []
