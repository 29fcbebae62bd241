"""A document's record as it is stored: JSON that ends with a checksum over what stands before it.

    {"document_id":"a-1", …,"checksum":"0f1e2d3c"}

A record that was changed around us may decode as well as ever and say anything; the checksum tells. Records of earlier
versions have none. Whoever edits a record by hand takes its `checksum` out.
"""

import zlib
from enum import StrEnum

import msgspec

from resources.document_state.label import label_of
from resources.document_state.model import DocStatus
from resources.document_state.transitions import derived_build, due_at, is_open
from resources.records.record import Record, Stamp

_NAME = b',"checksum":"'
_LENGTH = len(_NAME) + len(b'00000000"}')
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(DocStatus)


class DamagedRecordError(ValueError):
    """A stored value is not what was written."""


class RecordFault(StrEnum):
    """What can be wrong with a stored record by itself."""

    DAMAGED = "record damaged"  # it cannot be read, or does not fit its checksum
    ANOTHERS = "record of another document"  # it stands under a key that is not its own
    HINTS = "record's index entries differ"  # label, due time and openness do not follow from it
    BUILD = "record contradicts itself"  # its build does not follow from its links


class StoredRecord(msgspec.Struct, frozen=True):
    """A record looked at without trusting it.

    Attributes:
        document_id: the key it stands under.
        stamp: which state of it was seen; None: there is none.
        doc: what it says; None if that cannot be read.
        fault: what is wrong with it, if something is.
        label: what its label says, which is stored beside it.
        is_checked: whether it has a checksum.
    """

    document_id: str
    stamp: Stamp | None
    doc: DocStatus | None
    fault: RecordFault | None = None
    label: str = ""
    is_checked: bool = False


class _Exact(DocStatus, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A record without a checksum has no field we do not know: it may be one whose checksum's name was damaged."""


_exact_decoder = msgspec.json.Decoder(_Exact)


def encoded(doc: DocStatus) -> bytes:
    """The value to store."""
    value = _encoder.encode(doc)
    return value[:-1] + b',"checksum":"%08x"}' % zlib.crc32(value)


def decoded(value: bytes) -> DocStatus:
    """The record a value holds, without version and write id.

    Raises:
        DamagedRecordError: it is not what was written.
    """
    try:
        if not _has_checksum(value):
            _exact_decoder.decode(value)
            return _decoder.decode(value)
        # Fed in two parts: a record is read a million times in a listing, and copying it would cost as much again.
        if value[-10:] != b'%08x"}' % zlib.crc32(b"}", zlib.crc32(memoryview(value)[:-_LENGTH])):
            raise DamagedRecordError("it does not fit its checksum")
        return _decoder.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedRecordError(str(error)) from error


def document_of(record: Record) -> DocStatus:
    """What a record says, with the stamp it has.

    Raises:
        DamagedRecordError: it is not what was written, or not of the document whose key it stands under.
    """
    doc = decoded(record.value)
    if doc.document_id != record.key:
        raise DamagedRecordError(f"it is of document '{doc.document_id}'")
    return msgspec.structs.replace(doc, version=record.stamp.version, write_id=record.stamp.write_id)


def _has_checksum(value: bytes) -> bool:
    return value[-_LENGTH : len(_NAME) - _LENGTH] == _NAME


def examined(record: Record) -> StoredRecord:
    """Look at a record."""
    try:
        doc = decoded(record.value)
    except DamagedRecordError:
        return StoredRecord(record.key, record.stamp, None, RecordFault.DAMAGED, record.label)
    doc = msgspec.structs.replace(doc, version=record.stamp.version, write_id=record.stamp.write_id)
    return StoredRecord(record.key, record.stamp, doc, _fault(record, doc), record.label, _has_checksum(record.value))


def _fault(record: Record, doc: DocStatus) -> RecordFault | None:
    if doc.document_id != record.key:
        return RecordFault.ANOTHERS
    if (record.due_at, record.label, record.open) != (due_at(doc), label_of(doc), is_open(doc)):
        return RecordFault.HINTS
    build = doc.build
    return None if (build.status, build.reason, build.error) == derived_build(doc) else RecordFault.BUILD
