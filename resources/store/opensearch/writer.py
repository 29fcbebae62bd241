"""How documents are put into an OpenSearch index and taken out, without transactions.

A document's rows are written first, under a generation's name that nobody else has. Then its head is put in the place
of the head that was seen before (`if_seq_no`), and from then on readers see the new rows and no longer the old ones,
all at once. Then the old ones are deleted. So:

- Dying before the head leaves rows no reader sees. The document's next write or removal deletes them.
- Dying after the head leaves old rows no reader sees, likewise.
- A lost reply to the head's write is answered by the head itself: it names our generation, or it does not.
- Of two writers at once one head is refused, and its writer begins again with what stands then: a larger token than its
  own refuses it, and its rows were never seen. A head only ever names rows its own writer made, so no deletion, however
  late, takes rows from a document.
"""

import logging
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import NamedTuple

from resources.store.opensearch.cluster import Action, Outcome
from resources.store.opensearch.errors import meaning_of
from resources.store.opensearch.held import Held, read_heads
from resources.store.opensearch.index import IndexMeta, StoreIndex
from resources.store.opensearch.queries import Body, any_of, rows_nobody_sees
from resources.store.opensearch.rows import Head, head_action
from resources.store.store import StoreChangedError, StoreError

_logger = logging.getLogger(__name__)
# Each is a clause of one query, and servers allow about a thousand.
_DOCUMENTS_A_DELETION = 100


class Change(NamedTuple):
    """A document's new head, what was seen in its place, the rows to write before it, and generations known dead."""

    head: Head
    held: Held
    rows: Sequence[Action] = ()
    dead: frozenset[str] = frozenset()


class Published(NamedTuple):
    """What became of some changes, by document id. Refused ones met another writer's head; bad ones cannot be held."""

    done: set[str]
    refused: set[str]
    bad: dict[str, ValueError]


def publish(index: StoreIndex, meta: IndexMeta, changes: Sequence[Change]) -> Published:
    """Let documents stand as their new heads say. `meta` is what the index said it is when the changes were made.

    Raises:
        StoreError: the store did not take all of it. Each document stands as before or as given.
    """
    bad = _write_rows(index, changes)
    if index.meta() != meta:
        raise StoreChangedError(index.cluster.store, "was dropped or taken over meanwhile. Ask again what is held.")
    good = [change for change in changes if change.head.document_id not in bad]
    done, refused = _write_heads(index, good, bad)
    _delete_rows(index, [change for change in good if change.head.document_id in done])
    return Published(done, refused, bad)


def _write_rows(index: StoreIndex, changes: Sequence[Change]) -> dict[str, ValueError]:
    owners = [change.head.document_id for change in changes for _ in change.rows]
    outcomes = index.cluster.bulk([row for change in changes for row in change.rows], index.writing_alias)
    return _faults(index, zip(owners, outcomes, strict=True))


def _write_heads(index: StoreIndex, changes: Sequence[Change], bad: dict[str, ValueError]) -> tuple[set[str], set[str]]:
    """Which heads were written and which were refused; faults are added to `bad`."""
    actions = [head_action(change.head, change.held.version) for change in changes]
    outcomes = dict(
        zip(
            [change.head.document_id for change in changes],
            index.cluster.bulk(actions, index.writing_alias, refresh=True),
            strict=True,
        )
    )
    refused = {key for key, outcome in outcomes.items() if outcome.status == HTTPStatus.CONFLICT}
    bad |= _faults(index, ((key, outcome) for key, outcome in outcomes.items() if key not in refused))
    # A request that was sent again meets what it did the first time.
    wanted = {change.head.document_id: change.head for change in changes}
    ours = {key for key, (head, _) in read_heads(index, sorted(refused)).items() if head == wanted[key]}
    return outcomes.keys() - (refused - ours) - bad.keys(), refused - ours


def _faults(index: StoreIndex, outcomes: Iterable[tuple[str, Outcome]]) -> dict[str, ValueError]:
    """The documents with a row that cannot be held.

    Raises:
        StoreError: a row was not written for a reason that is not the document's.
    """
    faults: dict[str, ValueError] = {}
    for document_id, (status, kind, reason) in outcomes:
        if status >= HTTPStatus.BAD_REQUEST:
            error = meaning_of(index.cluster.store, index.cluster.url, status, kind, reason)
            if isinstance(error, StoreError):
                raise error
            faults.setdefault(document_id, ValueError(f"Document '{document_id}': {error}"))
    return faults


def _delete_rows(index: StoreIndex, changes: Sequence[Change]) -> None:
    """Delete what no reader sees any more. Without success it stays so, and the documents' next write tries again."""
    queries = [_unseen(change) for change in changes if _leaves_rows(change)]
    try:
        for start in range(0, len(queries), _DOCUMENTS_A_DELETION):
            _delete(index, any_of(queries[start : start + _DOCUMENTS_A_DELETION]))
    except (StoreError, ValueError) as error:
        _logger.warning("%s Rows that no reader sees stay until the documents are written again.", error)


def _delete(index: StoreIndex, body: Body) -> None:
    # A row that another writer deletes at the same moment is a conflict, and deleted.
    options = {"conflicts": "proceed", "refresh": "false", "ignore": 404}
    index.cluster.ask(lambda driver: driver.delete_by_query(index=index.name, body=body, **options))


def _leaves_rows(change: Change) -> bool:
    return bool(change.held.strangers or _dead(change))


def _dead(change: Change) -> frozenset[str]:
    old = change.held.head.generation if change.held.head else ""
    return (change.dead | {old}) - {"", change.head.generation}


def _unseen(change: Change) -> Body:
    # Whoever removes a document is the only one at work under that claim, so its own earlier rows go as well.
    below = change.head.fencing_token + (1 if change.head.removed else 0)
    return rows_nobody_sees(change.head.document_id, change.head.generation, _dead(change), below)
