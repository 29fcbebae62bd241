"""Copying all records: whole, proven, resumable, and never over another's records by mistake."""

import pytest

from resources.records.copying import KIND as COPY_KIND
from resources.records.copying import (
    CopyDiffersError,
    NothingToCopyError,
    TargetNotEmptyError,
    UnfinishedCopyError,
    copy_records,
    refuse_unfinished,
)
from resources.records.memory_backend import MemoryBackend
from resources.records.record import Write
from resources.records.sqlite_backend import SqliteBackend
from tests.records.contract import HOSTILE_KEYS, NOW

KINDS = ("document", "worker", "job", "job_result/x", "source", "reservation", "correction")


def records(n: int) -> list[Write]:
    """Records of every shape."""
    plain = [
        Write(f"k{i:05d}", b"\x00\xff%d" % i, None, NOW if i % 2 else None, f"l{i % 3}", i % 5 == 0) for i in range(n)
    ]
    return plain + [Write(key, key.encode(), None, NOW, key, open=True) for key in HOSTILE_KEYS]


async def content(backend) -> dict:
    """Everything of a backend but stamps."""
    found = {}
    for kind in await backend.list_kinds():
        async for record in backend.list_records(kind):
            found[kind, record.key] = (record.value, record.due_at, record.label, record.open)
    return found


@pytest.fixture
async def source():
    backend = MemoryBackend()
    for kind in KINDS:
        await backend.compare_and_set(kind, records(30))
    await backend.compare_and_set("document", [Write(f"d{i:05d}", b"{}", None, label="x") for i in range(4_500)])
    return backend


@pytest.fixture
async def target(tmp_path):
    backend = SqliteBackend(tmp_path / "state.db")
    yield backend
    await backend.close()


class DiesAt(SqliteBackend):
    """A target whose process dies at the n-th write."""

    n = 0

    async def _write(self, kind, writes):
        self.n -= 1
        if self.n < 0:
            raise KeyboardInterrupt
        return await super()._write(kind, writes)


async def test_everything_is_there(source, target):
    """All kinds, all fields, any key; and no trace of the copy itself is left."""
    seen = []
    copied = await copy_records(source, target, progress=seen.append)
    assert await content(target) == await content(source)
    assert {kind.kind for kind in copied} == set(KINDS)
    assert sum(seen) == sum(kind.n_records for kind in copied) == len(await content(source))
    assert COPY_KIND not in await target.list_kinds()


async def test_again_into_existing_writes_nothing(source, target):
    """Records that are equal are not written a second time."""
    await copy_records(source, target)
    assert sum(kind.n_written for kind in await copy_records(source, target, into_existing=True)) == 0


async def test_target_with_records_is_refused(source, target):
    """A target that holds records keeps them, whatever they are."""
    await target.compare_and_set("document", [Write("k00001", b"theirs", None)])
    with pytest.raises(TargetNotEmptyError, match="--into-existing"):
        await copy_records(source, target)
    assert await content(target) == {("document", "k00001"): (b"theirs", None, "", False)}


async def test_into_existing_replaces_and_keeps(source, target):
    """Told so, records of the same name are replaced and others stay."""
    await target.compare_and_set("document", [Write("k00001", b"theirs", None), Write("zz", b"theirs too", None)])
    await copy_records(source, target, into_existing=True)
    expected = await content(source) | {("document", "zz"): (b"theirs too", None, "", False)}
    assert await content(target) == expected


@pytest.mark.parametrize("n", range(1, 11))
async def test_goes_on_where_it_died(source, target, n):
    """Killed at any write, the same command finishes; what the source lost meanwhile goes from the target too."""
    dying = DiesAt(target.path)
    dying.n = n
    with pytest.raises(KeyboardInterrupt):
        await copy_records(source, dying)
    await dying.close()
    gone = await source.read("document", "d00000")
    await source.compare_and_set("document", [Write("d00000", None, gone.stamp)])
    await copy_records(source, target)
    assert await content(target) == await content(source)


async def test_another_source_does_not_go_on(source, target):
    """A copy that was begun from one store is not mixed with another."""
    dying = DiesAt(target.path)
    dying.n = 3
    with pytest.raises(KeyboardInterrupt):
        await copy_records(source, dying)
    other = MemoryBackend()
    other.uri = "memory://other"
    await other.compare_and_set("document", [Write("a", b"", None)])
    with pytest.raises(TargetNotEmptyError, match="under way"):
        await copy_records(other, target)


async def test_an_unfinished_target_is_not_worked_on(source, target):
    """Until the copy is finished, whoever wants to work there is told to repeat it."""
    dying = DiesAt(target.path)
    dying.n = 3
    with pytest.raises(KeyboardInterrupt):
        await copy_records(source, dying)
    with pytest.raises(UnfinishedCopyError, match="ingest state copy memory://"):
        await refuse_unfinished(target)
    await copy_records(source, target)
    await refuse_unfinished(target)


async def test_onto_itself_is_a_mistake(source):
    """Source and target are two."""
    with pytest.raises(TargetNotEmptyError, match="both"):
        await copy_records(source, source, into_existing=True)


async def test_empty_source_is_a_mistake(target):
    """A source without records is most likely misspelt."""
    with pytest.raises(NothingToCopyError, match="no record"):
        await copy_records(MemoryBackend(), target)


async def test_writes_meanwhile_are_noticed(source, target):
    """If somebody writes while records are copied, the copy is not called a success, and copying again mends it."""

    def write(n: int) -> None:
        if n == 2_000:
            source._kinds["document"].pop("d00001", None)

    with pytest.raises(CopyDiffersError, match="'document'"):
        await copy_records(source, target, progress=write)
    await copy_records(source, target)
    assert await content(target) == await content(source)
