"""Copies every record of one backend to another: resumable, and proven equal in the end.

A record in the target says that a copy is under way and from where, so that a copy that was interrupted is gone on with
and no other target with records in it is written to by mistake. Stamps are the target's own; all else is the same.
"""

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from resources.records.backend import BackendError, RecordBackend
from resources.records.record import Record, Write

KIND = "copy"
_KEY = "under way"
_CHUNK = 2_000


class TargetNotEmptyError(ValueError):
    """The target holds records, and nobody said that these may be written over."""


class NothingToCopyError(ValueError):
    """The source holds no record: most likely its URI is wrong."""


class UnfinishedCopyError(ValueError):
    """A copy into this store was interrupted: what it lacks would be taken for new, and what is done here undone."""


class CopyDiffersError(BackendError):
    """Source and target are not equal after the copy: somebody wrote to one of them meanwhile."""


class KindCopied(msgspec.Struct, frozen=True):
    """One kind of records: how many there are, how many had to be written, and the hash over all of them."""

    kind: str
    n_records: int
    n_written: int
    sha256: str


class _UnderWay(msgspec.Struct, frozen=True):
    source: str


async def copy_records(
    source: RecordBackend,
    target: RecordBackend,
    *,
    into_existing: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> list[KindCopied]:
    """Make the target hold what the source holds, and prove it.

    Args:
        source: only read.
        target: records that are equal already are not written again.
        into_existing: the target may hold records; those of the same kind and key are replaced, others stay.
        progress: told how many more records have been looked at.

    Raises:
        NothingToCopyError: the source is empty.
        TargetNotEmptyError: the target holds records and no copy from this source was under way.
        CopyDiffersError: one of the two changed during the copy; copying again brings over what differs.
    """
    if source.uri == target.uri:
        raise TargetNotEmptyError(f"{source.uri} is both source and target.")
    kinds = [kind for kind in await source.list_kinds() if kind != KIND]
    if not kinds:
        raise NothingToCopyError(f"State store {source.uri} holds no record. Is it the one you mean?")
    marker = await _begin(source, target, into_existing=into_existing)
    if not into_existing:
        kinds += [kind for kind in await target.list_kinds() if kind not in {KIND, *kinds}]
    copied = []
    for kind in kinds:
        keys = [record.key async for record in source.list_records(kind)]
        n_written = 0 if into_existing else await _remove_others(target, kind, set(keys))
        ordered = target.in_parts(kind, keys)
        for start in range(0, len(ordered), _CHUNK):
            chunk = ordered[start : start + _CHUNK]
            n_written += await _copy_chunk(source, target, kind, chunk)
            progress(len(chunk))
        copied.append(await _proven(source, target, kind, n_written, into_existing=into_existing))
    await target.compare_and_set(KIND, [Write(_KEY, None, marker.stamp)])
    return copied


async def refuse_unfinished(backend: RecordBackend) -> None:
    """Refuse to work on a store that a copy has not finished.

    Raises:
        UnfinishedCopyError: see there.
    """
    found = await backend.read(KIND, _KEY)
    if found is not None:
        source = msgspec.json.decode(found.value, type=_UnderWay).source
        raise UnfinishedCopyError(
            f"A copy from {source} into state store {backend.uri} is not finished. Repeat it: "
            f"`ingest state copy {source} {backend.uri}` goes on where it stopped."
        )


async def _begin(source: RecordBackend, target: RecordBackend, *, into_existing: bool) -> Record:
    under_way = msgspec.json.encode(_UnderWay(source.uri))
    found = await target.read(KIND, _KEY)
    if found is None:
        if not into_existing and (kinds := await target.list_kinds()):
            raise TargetNotEmptyError(
                f"State store {target.uri} holds records already ({', '.join(kinds[:5])}). Name an empty one, or say "
                "--into-existing: records of the same name are then replaced."
            )
        await target.compare_and_set(KIND, [Write(_KEY, under_way, None)])
        found = await target.read(KIND, _KEY)
    if found is None or found.value != under_way:
        raise TargetNotEmptyError(
            f"A copy from another state store into {target.uri} is under way. Finish that one, or name an empty target."
        )
    return found


async def _copy_chunk(source: RecordBackend, target: RecordBackend, kind: str, keys: Sequence[str]) -> int:
    """Copy some records; gives how many were not in the target as they are."""
    wanted = await source.read_many(kind, keys)
    held = await target.read_many(kind, keys)
    writes = [
        Write(key, record.value, held[key].stamp if key in held else None, record.due_at, record.label, record.open)
        for key, record in wanted.items()
        if key not in held or _content(held[key]) != _content(record)
    ]
    await target.compare_and_set(kind, writes)
    return len(writes)


async def _remove_others(target: RecordBackend, kind: str, keys: set[str]) -> int:
    """Take out what an interrupted copy brought and the source has lost since."""
    others = [record async for record in target.list_records(kind) if record.key not in keys]
    for start in range(0, len(others), _CHUNK):
        await target.compare_and_set(kind, [Write(r.key, None, r.stamp) for r in others[start : start + _CHUNK]])
    return len(others)


async def _proven(
    source: RecordBackend, target: RecordBackend, kind: str, n_written: int, *, into_existing: bool
) -> KindCopied:
    """Read both sides again and compare number and hash."""
    hashes, counts = [], []
    ours: set[str] = set()
    for backend in (source, target):
        digest, count = hashlib.sha256(), 0
        async for record in backend.list_records(kind):
            if backend is source:
                ours.add(record.key)
            elif into_existing and record.key not in ours:
                continue
            digest.update(msgspec.json.encode(_content(record)))
            count += 1
        hashes.append(digest.hexdigest())
        counts.append(count)
    if hashes[0] != hashes[1]:
        raise CopyDiffersError(
            target.uri,
            f"records of kind '{kind}' differ from those of {source.uri} ({counts[1]} there, {counts[0]} here). "
            "Somebody wrote meanwhile: stop the runs and copy again, which brings over what differs.",
        )
    return KindCopied(kind, counts[0], n_written, hashes[0])


def _content(record: Record) -> tuple[str, bytes, datetime | None, str, bool]:
    """All of a record but its stamp."""
    due_at = record.due_at.astimezone(UTC) if record.due_at else None
    return record.key, record.value, due_at, record.label, record.open
