"""How many links there are by store and state: the one count of links, true in every process and after any crash.

It is read from the labels of the records, which are written by the same conditional write as the links. A tally kept
beside them would have to be written once a link to be as true, or be wrong by what a killed worker had not written
yet; and it could only say how often something changed, which the log line `store_link_changed` tells with its
circumstances. So what is shown, exported and judged is the number of links in a state now: it goes up and down.
"""

from collections import Counter
from datetime import UTC, datetime

from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.model import LinkState, Presence

_EARLIEST = datetime.min.replace(tzinfo=UTC)
LinkCounts = dict[str, Counter[LinkState]]


async def count_links(state: DocumentStateStore) -> LinkCounts:
    """The links of documents that are not deleted, to stores they are due in: by store, then by state."""
    found: LinkCounts = {}
    for label, n in (await state.counts()).items():
        if label.presence is not Presence.DELETED:
            for slug, link_state, _ in label.links:
                found.setdefault(slug, Counter())[link_state] += n
    return found


async def last_pushes(state: DocumentStateStore) -> dict[str, datetime]:
    """When a document was last written into each store, of those it holds. Reads every record that has a link."""
    found: dict[str, datetime] = {}
    async for doc in state.iter_statuses(lambda label: bool(label.links)):
        for slug, link in doc.links.items():
            if link.last_push_at is not None and link.last_push_at > found.get(slug, _EARLIEST):
                found[slug] = link.last_push_at
    return found
