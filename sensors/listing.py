"""What is known of a source's last listing: a snapshot that the state confirms.

The rule: **a confirmed snapshot has an entry for every present record of its source.** An entry's version is the one
its record agreed on, or "" if it is to be looked at again; "" equals no listed version. So what vanished is the entries
a listing lacks, and nothing needs a list of the records.

One record of the state per source names the snapshot that is right. Whoever writes records of documents first makes it
name none (`hold`), and a new snapshot last (`confirm`), each by compare-and-set: dying in between, a second discovery
at the same time, a lost snapshot and a restored or exchanged state all end in a record that does not name the snapshot
that is there. Then the entries are to be made anew from the records.
"""

import secrets
from datetime import datetime, timedelta

import msgspec

from resources.artifact_store.artifact_store import ArtifactStore
from resources.document_source.document_source import DocumentSource
from resources.records.backend import RecordBackend
from resources.records.record import Stamp, Write
from sensors.listing_snapshot import ListingSnapshots

KIND = "listing"
RECONCILE_EVERY = timedelta(hours=24)


class ListingRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the state says of a source's listing.

    Attributes:
        snapshot: id of the snapshot that is right; "": none, for somebody writes records, or died doing so.
        org_id: whose documents its entries are: the same names are other documents of another organisation.
        reconciled_at: when the entries were last made from the records.
    """

    snapshot: str = ""
    org_id: str = ""
    reconciled_at: datetime | None = None


class Listing:
    """One discovery's hold on what is known of its source. Of use once: `read`, then `hold` and `confirm`."""

    def __init__(
        self, source: DocumentSource, snapshots: ListingSnapshots, backend: RecordBackend, reconcile_every: timedelta
    ) -> None:
        self._source = source
        self._snapshots = snapshots
        self._backend = backend
        self._reconcile_every = reconcile_every
        self._stamp: Stamp | None = None
        self._reconciled_at: datetime | None = None
        self._alone = True
        self.is_held = False

    async def read(self, now: datetime) -> dict[str, str] | None:
        """The entries of the confirmed snapshot.

        None if they are to be made from the records: no snapshot is confirmed, or the last time is a day ago (or
        lies a day ahead, by a clock that was wrong then or is wrong now).
        """
        found = await self._backend.read(KIND, self._source.name)
        self._stamp = found.stamp if found else None
        record = _decoded(found.value) if found else ListingRecord()
        self._reconciled_at = record.reconciled_at
        if not record.snapshot or record.org_id != self._source.org_id or record.reconciled_at is None:
            return None
        if abs(now - record.reconciled_at) >= self._reconcile_every:
            return None
        return self._snapshots.read(self._source.name, record.snapshot)

    async def hold(self) -> None:
        """Make sure that no snapshot is confirmed. To be called before every group of records is written.

        Where another discovery is at work as well, both go on, since each write of a record has its own condition.
        But neither can know that its entries are all, so neither confirms, and the next discovery asks the records.
        """
        if self.is_held:
            if await self._current() == self._stamp:
                return
        elif await self._set(ListingRecord(), self._stamp):
            self.is_held = True
            return
        self._alone = False
        self.is_held = True
        while not await self._set(ListingRecord(), await self._current()):
            pass  # each refusal is another's progress

    async def confirm(self, entries: dict[str, str], reconciled_at: datetime | None = None) -> None:
        """Keep entries as the source's snapshot, unless another discovery was at work meanwhile.

        Args:
            entries: one for every present record.
            reconciled_at: when they were made from the records, if they were.
        """
        if self._alone:
            record = ListingRecord(secrets.token_hex(8), self._source.org_id, reconciled_at or self._reconciled_at)
            self._snapshots.write(self._source.name, record.snapshot, entries)
            if await self._set(record, self._stamp):
                self._reconciled_at = record.reconciled_at
                self.is_held = False
                return
        # Another may have confirmed entries made before our last records were written.
        await self.hold()

    async def _current(self) -> Stamp | None:
        found = await self._backend.read(KIND, self._source.name)
        return found.stamp if found else None

    async def _set(self, record: ListingRecord, expected: Stamp | None) -> bool:
        write = Write(self._source.name, msgspec.json.encode(record), expected)
        result = (await self._backend.compare_and_set(KIND, [write]))[0]
        if result.written:
            self._stamp = result.stamp
        return result.written


class Listings:
    """Where listings are kept: snapshots among the artifacts, what confirms them in the state."""

    def __init__(
        self, artifacts: ArtifactStore, backend: RecordBackend, reconcile_every: timedelta = RECONCILE_EVERY
    ) -> None:
        self._snapshots = ListingSnapshots(artifacts)
        self._backend = backend
        self._reconcile_every = reconcile_every

    def of(self, source: DocumentSource) -> Listing:
        """A source's listing, for one discovery."""
        return Listing(source, self._snapshots, self._backend, self._reconcile_every)

    async def hold(self, source: DocumentSource) -> None:
        """Let the next discovery of a source ask the records.

        For whoever makes a document present without having listed it; to be called before that is written.
        """
        await self.of(source).hold()


def _decoded(value: bytes) -> ListingRecord:
    try:
        return msgspec.json.decode(value, type=ListingRecord)
    except msgspec.MsgspecError:
        return ListingRecord()  # a later version's, perhaps: it confirms nothing to us
