"""The truth about every document: read it, change it conditionally, claim it."""

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime

import msgspec

from resources.document_state.label import DocumentLabel, label_of, readable_label
from resources.document_state.link_changes import log_link_changes
from resources.document_state.model import SETTLED, DocStatus, Phase, Presence
from resources.document_state.stored_record import DamagedRecordError, StoredRecord, document_of, encoded, examined
from resources.document_state.transitions import check_transition, due_at, is_open
from resources.records.backend import BackendCorruptError, RecordBackend
from resources.records.record import DueKey, Record, Stamp, Write

KIND = "document"
_NO_LABEL = "what stands beside its record is no label of ours. `ingest verify --repair` mends it."
_LAST_MOMENT = datetime(9999, 12, 31, tzinfo=UTC)
_logger = logging.getLogger(__name__)

Change = tuple[DocStatus, DocStatus | None]  # (what it shall be, what it was when read; None: absent)
LabelFilter = Callable[[DocumentLabel], bool]


class DocumentStateStore(ABC):
    """One truthful record per document over both phases. Safe for many workers: every write is conditional.

    A damaged record, one that is not what was written, stops nothing but what is about it alone: whoever reads, lists
    or counts many gets the others, and finds in `damaged` which were left out.
    """

    @property
    @abstractmethod
    def damaged(self) -> AbstractSet[str]:
        """Ids of the documents whose records were damaged when they were last met here: read, or listed by label."""

    @abstractmethod
    async def get_status(self, document_id: str) -> DocStatus | None:
        """The document's record, or None if it is unknown.

        Raises:
            BackendCorruptError: it is damaged.
        """

    @abstractmethod
    async def set_status(self, document_id: str, status: DocStatus, *, expected: DocStatus | None = None) -> bool:
        """Write a record if the stored one is still `expected`.

        Args:
            document_id: which document.
            status: the whole new record.
            expected: the record as it was read; None: the document must be unknown.

        Returns:
            False if the stored record differs; then nothing was written.

        Raises:
            IllegalTransitionError: the table of transitions does not allow this change.
        """

    @abstractmethod
    async def list_incomplete(self, phase: Phase, where: LabelFilter | None = None) -> list[str]:
        """Ids of present documents that are not done in a phase, FAILED included: it is also the diagnosis."""

    @abstractmethod
    async def get_many(self, document_ids: Collection[str]) -> dict[str, DocStatus]:
        """The records that exist among these, but for damaged ones."""

    @abstractmethod
    async def examine_many(self, document_ids: Collection[str]) -> dict[str, StoredRecord]:
        """The records that exist among these, looked at without trusting them. A damaged one is no error."""

    @abstractmethod
    def iter_examined(self) -> AsyncIterator[StoredRecord]:
        """All records by ascending document id, looked at without trusting them. A damaged one is no error."""

    @abstractmethod
    async def replace_faulty(self, changes: Sequence[tuple[StoredRecord, DocStatus | None]]) -> list[bool]:
        """Put a record in the place of one with a fault, or of none, if it is still the one that was looked at.

        What may follow what is not asked: nobody knows what the record was. None: the record goes.

        Returns:
            for each whether it was written.
        """

    @abstractmethod
    async def set_many(self, changes: Sequence[Change]) -> list[DocStatus | None]:
        """Many conditional writes; for each the record as stored now, or None if it was refused."""

    @abstractmethod
    async def list_due(self, now: datetime, limit: int | None) -> list[str]:
        """Ids of documents that want a worker, the longest due first; None: of all. A hint: the claim is the truth."""

    @abstractmethod
    async def list_due_after(self, when: datetime) -> list[str]:
        """Ids of all documents that will want a worker, but only after this time."""

    @abstractmethod
    async def list_due_together(self, now: datetime, limit: int, worker_id: str) -> list[str]:
        """Ids of documents that want a worker and are cheap to write together; another worker is led to others."""

    @abstractmethod
    def in_parts(self, document_ids: Collection[str]) -> list[str]:
        """The ids in an order in which neighbours are cheap to write together."""

    @abstractmethod
    async def open_labels(self) -> Mapping[str, DocumentLabel]:
        """The documents with something still to become of them, by ascending id, with their labels.

        Costs what is open, however many documents there are. A hint where the backend's index lags.
        """

    async def list_open(self, where: LabelFilter) -> list[str]:
        """Ids of the open documents whose label passes, ascending."""
        passes: dict[int, bool] = {}  # documents by the thousand share a label
        found = []
        for document_id, label in (await self.open_labels()).items():
            if id(label) not in passes:
                passes[id(label)] = where(label)
            if passes[id(label)]:
                found.append(document_id)
        return found

    @property
    @abstractmethod
    def counts_cheaply(self) -> bool:
        """Whether `counts` costs little beside listing a source; else it reads the whole corpus."""

    @abstractmethod
    async def counts(self) -> Mapping[DocumentLabel, int]:
        """How many documents carry each label."""

    @abstractmethod
    def iter_statuses(self, where: LabelFilter | None = None) -> AsyncIterator[DocStatus]:
        """All records, or those whose label passes, by ascending document id, but for damaged ones."""

    @abstractmethod
    async def list_ids(self, where: LabelFilter) -> list[str]:
        """Ids of all documents whose label passes, ascending. Costs what the whole corpus costs on some backends."""


class RecordDocumentStateStore(DocumentStateStore):
    """Documents as records of a backend."""

    def __init__(self, backend: RecordBackend) -> None:
        self._backend = backend
        self._damaged: set[str] = set()

    @property
    def damaged(self) -> AbstractSet[str]:
        """See DocumentStateStore."""
        return self._damaged

    async def get_status(self, document_id: str) -> DocStatus | None:
        """See DocumentStateStore."""
        record = await self._backend.read(KIND, document_id)
        return self._decode(record) if record else None

    async def set_status(self, document_id: str, status: DocStatus, *, expected: DocStatus | None = None) -> bool:
        """See DocumentStateStore."""
        if status.document_id != document_id:
            raise ValueError(f"The record of '{status.document_id}' cannot be written as '{document_id}'.")
        return (await self.set_many([(status, expected)]))[0] is not None

    async def list_incomplete(self, phase: Phase, where: LabelFilter | None = None) -> list[str]:
        """See DocumentStateStore."""
        return await self.list_open(
            lambda label: (
                label.presence is Presence.PRESENT
                and label.status(phase) not in SETTLED
                and (where is None or where(label))
            )
        )

    async def get_many(self, document_ids: Collection[str]) -> dict[str, DocStatus]:
        """See DocumentStateStore."""
        records = await self._backend.read_many(KIND, document_ids)
        return {key: doc for key, record in records.items() if (doc := self._readable(record)) is not None}

    async def examine_many(self, document_ids: Collection[str]) -> dict[str, StoredRecord]:
        """See DocumentStateStore."""
        records = await self._backend.read_many(KIND, document_ids)
        return {key: examined(record) for key, record in records.items()}

    async def iter_examined(self) -> AsyncIterator[StoredRecord]:
        """See DocumentStateStore."""
        async for record in self._backend.list_records(KIND):
            yield examined(record)

    async def replace_faulty(self, changes: Sequence[tuple[StoredRecord, DocStatus | None]]) -> list[bool]:
        """See DocumentStateStore."""
        writes = [
            Write(seen.document_id, None, seen.stamp) if new is None else _write_of(new, seen.stamp)
            for seen, new in changes
        ]
        return [result.written for result in await self._backend.compare_and_set(KIND, writes)]

    async def set_many(self, changes: Sequence[Change]) -> list[DocStatus | None]:
        """See DocumentStateStore."""
        writes = []
        for new, old in changes:
            check_transition(old, new)
            expected = Stamp(old.version, old.write_id) if old is not None else None
            writes.append(_write_of(new, expected))
        results = await self._backend.compare_and_set(KIND, writes)
        log_link_changes([change for change, result in zip(changes, results, strict=True) if result.written])
        return [
            msgspec.structs.replace(new, version=result.stamp.version, write_id=result.stamp.write_id)
            if result.written and result.stamp
            else None
            for (new, _), result in zip(changes, results, strict=True)
        ]

    async def list_due(self, now: datetime, limit: int | None) -> list[str]:
        """See DocumentStateStore."""
        return [due.key for due in await self._backend.list_due(KIND, now, limit)]

    async def list_due_after(self, when: datetime) -> list[str]:
        """See DocumentStateStore."""
        behind = DueKey(when, "")
        return [due.key for due in await self._backend.list_due(KIND, _LAST_MOMENT, None, behind)]

    async def list_due_together(self, now: datetime, limit: int, worker_id: str) -> list[str]:
        """See DocumentStateStore."""
        return await self._backend.list_due_together(KIND, now, limit, worker_id)

    def in_parts(self, document_ids: Collection[str]) -> list[str]:
        """See DocumentStateStore."""
        return self._backend.in_parts(KIND, document_ids)

    async def open_labels(self) -> Mapping[str, DocumentLabel]:
        """See DocumentStateStore."""
        labels: dict[str, DocumentLabel] = {}
        found = {}
        for record in await self._backend.list_open(KIND):
            label = labels.get(record.label) or readable_label(record.label)
            if label is None:
                self._leave_out(record.key, _NO_LABEL)
                continue
            found[record.key] = labels[record.label] = label
        return found

    @property
    def counts_cheaply(self) -> bool:
        """See DocumentStateStore."""
        return self._backend.counts_cheaply

    async def counts(self) -> Mapping[DocumentLabel, int]:
        """See DocumentStateStore."""
        counted = await self._backend.count_labels(KIND)
        return {label: counted[text] for text, label in (await self._readable_labels(counted)).items()}

    async def iter_statuses(self, where: LabelFilter | None = None) -> AsyncIterator[DocStatus]:
        """See DocumentStateStore."""
        labels = None if where is None else await self._labels(where)
        if labels is not None and not labels:
            return
        async for record in self._backend.list_records(KIND, labels=labels):
            if (doc := self._readable(record)) is not None:
                yield doc

    async def list_ids(self, where: LabelFilter) -> list[str]:
        """See DocumentStateStore."""
        return await self._backend.list_keys(KIND, await self._labels(where))

    async def _labels(self, where: LabelFilter) -> list[str]:
        labels = await self._readable_labels(await self._backend.count_labels(KIND))
        return [text for text, label in labels.items() if where(label)]

    async def _readable_labels(self, texts: Collection[str]) -> dict[str, DocumentLabel]:
        """The labels that can be read; the documents that carry another one are left out."""
        labels = {text: readable_label(text) for text in texts}
        for document_id in await self._backend.list_keys(KIND, [text for text in texts if labels[text] is None]):
            self._leave_out(document_id, _NO_LABEL)
        return {text: label for text, label in labels.items() if label is not None}

    def _readable(self, record: Record) -> DocStatus | None:
        """What a record says; None if it is damaged."""
        try:
            doc = self._decode(record)
        except BackendCorruptError as error:
            self._leave_out(record.key, str(error))
            return None
        if self._damaged:
            self._damaged.discard(record.key)
        return doc

    def _leave_out(self, document_id: str, why: str) -> None:
        if document_id not in self._damaged:
            _logger.warning("Document '%s' is left out: %s", document_id, why)
            self._damaged.add(document_id)

    def _decode(self, record: Record) -> DocStatus:
        try:
            return document_of(record)
        except DamagedRecordError as error:
            said = f"the record of document '{record.key}' is damaged ({error}). `ingest verify --repair` mends it."
            raise BackendCorruptError(self._backend.uri, said) from error


def _write_of(doc: DocStatus, expected: Stamp | None) -> Write:
    is_new = doc.version == 0 and not doc.write_id
    value = encoded(doc if is_new else msgspec.structs.replace(doc, version=0, write_id=""))
    return Write(doc.document_id, value, expected, due_at(doc), label_of(doc), is_open(doc))
