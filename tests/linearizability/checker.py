"""Whether overlapping operations could have happened one after the other.

Wing and Gong's search with Lowe's memory of configurations already tried ("Testing for linearizability", 2017). An
operation of which nobody knows whether it took effect may do so at any moment after it began, or never.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

State = Hashable


class Operation(NamedTuple):
    """One operation on one object, as its client saw it.

    Attributes:
        client: who asked for it; a client asks for one thing at a time.
        name: what was asked.
        key: of which object.
        invoked: when it began, in nanoseconds.
        returned: when its answer came; None: none came, and nobody knows whether it took effect.
        given: what was handed in.
        answer: what came back.
    """

    client: int
    name: str
    key: str
    invoked: int
    returned: int | None
    given: Any = None
    answer: Any = None


# The states an object may be in once the operation, as answered, has happened in this one; none if it cannot have.
Model = Callable[[State, Operation], Iterable[State]]


def linearization(history: Sequence[Operation], model: Model, initial: State) -> list[Operation] | None:
    """An order in which one object explains all its answers, in keeping with time; None if there is none."""
    operations = sorted(history, key=lambda operation: operation.invoked)
    answered = sum(1 << i for i, operation in enumerate(operations) if operation.returned is not None)
    tried: set[tuple[int, State]] = set()
    order: list[Operation] = []

    def search(done: int, state: State) -> bool:
        if done & answered == answered:
            return True
        if (done, state) in tried:
            return False
        tried.add((done, state))
        left = [(i, operation) for i, operation in enumerate(operations) if not done >> i & 1]
        # Whatever began after one of these was answered happened after it.
        first_answer = min(operation.returned for _, operation in left if operation.returned is not None)
        for i, operation in left:
            if operation.invoked > first_answer:
                break
            states = list(model(state, operation))
            for after in states:
                order.append(operation)
                if search(done | 1 << i, after):
                    return True
                order.pop()
            if states == [state]:
                return False  # what changes nothing stands in no other's way: it need not be tried later as well
        return False

    return order if search(0, initial) else None


def by_object(history: Iterable[Operation]) -> dict[str, list[Operation]]:
    """The operations of each object. A history is linearizable if that of each object is (Herlihy and Wing, 1990)."""
    objects: dict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        objects[operation.key].append(operation)
    return objects


def shown(history: Sequence[Operation]) -> str:
    """A history as a person reads it: a line an operation, times in microseconds from the first one."""
    operations = sorted(history, key=lambda operation: operation.invoked)
    start = operations[0].invoked
    return "\n".join(
        f"{(operation.invoked - start) // 1000:>8} {_answered(operation, start):>8}  client {operation.client}"
        f"  {operation.name} {operation.key} {operation.given} -> {operation.answer}"
        for operation in operations
    )


def _answered(operation: Operation, start: int) -> str:
    return "unknown" if operation.returned is None else str((operation.returned - start) // 1000)
