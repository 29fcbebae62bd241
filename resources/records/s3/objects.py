"""What the objects of a shard hold, and how they are read.

    017.jsonl.zst                    the head: where the records differ from the base; without a base, all of them
    017-0123456789abcdef.jsonl.zst   the base, if the shard is too large to be put whole with each change

Both are JSON lines by ascending key (`line`), packed (`packing`). Before them a head has the id of its base and the
keys that the base alone has, so that a version that knows no bases refuses it instead of taking it for the whole:

    {"base":"0123456789abcdef","removed":["a","b"],"format":2}
"""

import msgspec

from resources.records.s3.layout import BASE_ID
from resources.records.s3.line import Line, UnreadableError, decode_lines, encode_lines
from resources.records.s3.packing import Changes, pack, split, tail_of, unpack
from resources.records.s3.shard import NO_BASE, Base, Shard, shard_of

FORMAT = 2
_BEGINS = b'{"base":'


class _Top(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a head that has a base."""

    base: str
    removed: list[str]
    format: int


class _AnyFormat(msgspec.Struct):
    """What any version's first line says."""

    format: int


class Head(msgspec.Struct, frozen=True):
    """What a head says; `base` is the id of its base, "" without one."""

    base: str
    removed: list[str]
    lines: dict[str, Line]
    changes: Changes
    text_bytes: int

    def on(self, base: Base) -> Shard:
        """The shard, given the base that the head names.

        Raises:
            UnreadableError: the two do not fit.
        """
        for key in self.removed:
            if key not in base.lines or key in self.lines:
                raise UnreadableError(f"line 1: it removes '{key}' from a base that has no such record.")
        lines = {**base.lines, **self.lines}
        for key in self.removed:
            del lines[key]
        if not self.lines.keys() <= base.lines.keys():
            lines = dict(sorted(lines.items()))
        shard = Shard(lines, self.changes, base=base, delta={**self.lines, **dict.fromkeys(self.removed)})
        shard.delta_bytes = self.text_bytes
        return shard


def encode_head(shard: Shard) -> bytes:
    """The head of a shard.

    Raises:
        TooLargeError: no reader would accept it.
    """
    there = sorted((key, line) for key, line in shard.delta.items() if line is not None)
    text = encode_lines([line for _, line in there])
    if shard.base is not NO_BASE:
        removed = sorted(key for key, line in shard.delta.items() if line is None)
        text = msgspec.json.encode(_Top(shard.base.id, removed, FORMAT)) + b"\n" + text
    shard.delta_bytes = len(text)
    return pack(text) + tail_of(shard.changes)


def encode_base(shard: Shard, base_id: str) -> tuple[Base, bytes]:
    """A base that has all records of a shard, and its object.

    Raises:
        TooLargeError: no reader would accept it.
    """
    text = encode_lines(list(shard.lines.values()))
    packed = pack(text)
    return Base(base_id, shard.lines, len(text), len(packed)), packed


def decode_head(body: bytes, number: int, shards: int) -> Head:
    """Read a head whole.

    Raises:
        UnreadableError: something in it is not as we write it.
    """
    packed, changes = split(body)
    text = unpack(packed)
    if not text.startswith(_BEGINS):
        return Head("", [], _decode(text, number, shards), changes, len(text))
    first, _, others = text.partition(b"\n")
    top = _decode_top(first)
    return Head(top.base, top.removed, _decode(others, number, shards, first=2), changes, len(text))


def decode_base(base_id: str, body: bytes, number: int, shards: int) -> Base:
    """Read a base whole.

    Raises:
        UnreadableError: something in it is not as we write it.
    """
    text = unpack(body)
    return Base(base_id, _decode(text, number, shards), len(text), len(body))


def _decode(text: bytes, number: int, shards: int, first: int = 1) -> dict[str, Line]:
    lines: dict[str, Line] = {}
    before = ""
    for at, line in enumerate(decode_lines(text, first), first):
        if line.key <= before:
            raise UnreadableError(f"line {at}, record '{line.key}': it does not stand in the order of keys.")
        if shard_of(line.key, shards) != number:
            belongs = shard_of(line.key, shards)
            raise UnreadableError(f"line {at}, record '{line.key}': it belongs into shard {belongs}.")
        lines[line.key] = line
        before = line.key
    return lines


def _decode_top(line: bytes) -> _Top:
    try:
        found = msgspec.json.decode(line, type=_AnyFormat).format
        if found > FORMAT:
            raise UnreadableError(
                f"line 1: it has format {found}; this version reads up to {FORMAT}. Upgrade ingest-assets."
            )
        top = msgspec.json.decode(line, type=_Top)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableError(f"line 1 is damaged: {error}.") from error
    if found != FORMAT or not BASE_ID.fullmatch(top.base):
        raise UnreadableError(f"line 1 is damaged: it has format {found} and names the base '{top.base}'.")
    return top
