"""One record as one line of JSON.

    {"key":"a","version":3,"write_id":"x.y.z","due":1767323045678901,"label":"red","open":true,"value":{"any":"JSON"}}

A value that is no JSON, or would not come back byte for byte, stands in `base64` instead of `value`.
"""

import msgspec
from msgspec import UNSET, Raw, UnsetType

from resources.records.microseconds import from_micros, to_micros
from resources.records.record import Record, Stamp, Write

FORMAT = 1


class UnreadableError(Exception):
    """What an object holds is not what we write. The message says where and what."""


class Line(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A record as it is stored.

    A field that this version does not know would be lost when the line is written again, so it makes the line
    unreadable; a version that adds one raises `format`.

    Attributes:
        due: microseconds since 1970.
        format: absent means the first.
    """

    key: str
    version: int
    write_id: str
    due: int | None = None
    label: str = ""
    open: bool = False
    value: Raw | UnsetType = UNSET
    base64: bytes | UnsetType = UNSET
    format: int = FORMAT

    @property
    def stamp(self) -> Stamp:
        """Which state of the record it is."""
        return Stamp(self.version, self.write_id)

    def record(self) -> Record:
        """The record it holds."""
        value = bytes(self.value) if self.value is not UNSET else self.base64
        due_at = None if self.due is None else from_micros(self.due)
        assert value is not UNSET
        return Record(self.key, value, self.stamp, due_at, self.label, self.open)


class _Recognisable(msgspec.Struct):
    """What can be said of a line that cannot be read."""

    key: str = "?"
    format: int = FORMAT


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Line)
_recogniser = msgspec.json.Decoder(_Recognisable)


def line_of(write: Write, value: bytes, stamp: Stamp) -> Line:
    """The line for a write of a value."""
    due = None if write.due_at is None else to_micros(write.due_at)
    bare = Line(
        key=write.key, version=stamp.version, write_id=stamp.write_id, due=due, label=write.label, open=write.open
    )
    embedded = msgspec.structs.replace(bare, value=Raw(value))
    return embedded if _comes_back(embedded, value) else msgspec.structs.replace(bare, base64=value)


def encode_lines(lines: list[Line]) -> bytes:
    """The text of lines."""
    return _encoder.encode_lines(lines)


def decode_lines(text: bytes, first: int = 1) -> list[Line]:
    """The lines of a text, of which the first has this number.

    Raises:
        UnreadableError: one of them is damaged, or of a newer format.
    """
    try:
        lines = _decoder.decode_lines(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableError(_first_unreadable(text, first)) from error
    for number, line in enumerate(lines, first):
        if line.format != FORMAT or (line.value is UNSET) == (line.base64 is UNSET):
            raise UnreadableError(f"line {number}, record '{line.key}': {_objection(line.format)}.")
    return lines


def _comes_back(line: Line, value: bytes) -> bool:
    """Whether a value is one line of strict JSON that no reader of the line can mistake."""
    if b"\n" in value or b"\r" in value:
        return False
    try:
        msgspec.json.decode(value)
        return _decoder.decode(_encoder.encode(line)).value == line.value
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def _first_unreadable(text: bytes, first: int) -> str:
    for number, raw in enumerate(text.split(b"\n"), first):
        try:
            if raw:
                _decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            try:
                known = _recogniser.decode(raw)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return f"line {number} is damaged: {error}."
            return f"line {number}, record '{known.key}': {_objection(known.format, str(error))}."
    return "its lines are not separated as ours are."


def _objection(found: int, otherwise: str = "it has not exactly one value") -> str:
    if found > FORMAT:
        return f"it has format {found}; this version reads up to {FORMAT}. Upgrade ingest-assets"
    return otherwise if found == FORMAT else f"it has the unknown format {found}"
