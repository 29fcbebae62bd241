"""Stores as records: decided once, followed since, and found when they are configured no more."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from resources.document_state.store_registry import KIND, DeclaredStore, StoreRegistry
from resources.records.memory_backend import MemoryBackend
from resources.records.record import Write
from resources.records.sqlite_backend import SqliteBackend
from tests.document_state.documents import NOW

LATER = NOW + timedelta(days=1)


def declared(slug: str = "s", **changes) -> DeclaredStore:
    """A store of the configuration that leaves its embedder open."""
    values = {"name": slug, "kind": "duckdb", "embedder": "", "config": {}, "is_default": slug == "s"}
    return DeclaredStore(slug, **(values | changes))


@pytest.fixture
def registry() -> StoreRegistry:
    """A registry in which no store is recorded."""
    return StoreRegistry(MemoryBackend())


async def test_the_embedder_is_decided_once(registry) -> None:
    """A store that names no embedder has the default of its first moment, and keeps it and that moment for ever."""
    first = (await registry.register([declared()], "hash", NOW))["s"]
    assert (first.embedder, first.created_at, first.store_id) == ("hash", NOW, "s")
    assert (await registry.register([declared()], "wordllama", LATER))["s"] == first
    assert await registry.all() == {"s": first}


async def test_a_named_embedder_is_recorded_when_the_data_is_its_own(registry) -> None:
    """The configuration naming another embedder changes no record: that the data is another's does."""
    first = (await registry.register([declared()], "hash", NOW))["s"]
    assert (await registry.register([declared(embedder="minilm")], "hash", LATER))["s"] == first
    await registry.adopt(first, "minilm")
    assert (await registry.all())["s"] == msgspec.structs.replace(first, embedder="minilm")


async def test_the_rest_follows_the_configuration(registry) -> None:
    """Name, kind, options and which is the default are as the configuration says now."""
    await registry.register([declared(), declared("t")], "hash", NOW)
    changed = [declared(name="Law", config={"path": "x"}, is_default=False), declared("t", is_default=True)]
    records = await registry.register(changed, "hash", LATER)
    assert (records["s"].name, records["s"].config) == ("Law", {"path": "x"})
    assert [slug for slug, record in (await registry.all()).items() if record.is_default] == ["t"]
    assert {record.created_at for record in records.values()} == {NOW}


async def test_a_store_that_is_configured_no_more(registry) -> None:
    """It keeps its record, and is the default no more; configured again, it is the same store, to be looked at."""
    first = (await registry.register([declared()], "hash", NOW))["s"]
    records = await registry.register([declared("t")], "hash", LATER)
    assert records["s"] == msgspec.structs.replace(first, is_default=False, look_at=LATER)
    back = (await registry.register([declared(), declared("t")], "minilm", LATER))["s"]
    assert back == msgspec.structs.replace(first, look_at=LATER)


@pytest.mark.parametrize("changes", [{"kind": "pgvector"}, {"config": {"path": "x"}}, {"config": None}])
async def test_a_store_that_may_be_another(registry, changes) -> None:
    """Of another kind or with other options it is to be looked at, until somebody has; a name or default is nothing."""
    await registry.register([declared()], "hash", NOW)
    same = await registry.register([declared(name="Law", is_default=False)], "hash", NOW)
    assert same["s"].look_at is None
    moved = (await registry.register([declared(**changes)], "hash", LATER))["s"]
    assert moved.look_at == LATER
    await registry.looked(moved, None)
    assert (await registry.register([declared(**changes)], "hash", LATER))["s"].look_at is None


async def test_a_store_that_is_added_later(registry) -> None:
    """It may be another one under a new slug, so it is looked at; the stores of a new project are not."""
    first = await registry.register([declared(), declared("t")], "hash", NOW)
    assert {record.look_at for record in first.values()} == {None}
    assert (await registry.register([declared(), declared("u")], "hash", LATER))["u"].look_at == LATER


async def test_a_look_at_what_is_another_by_now(registry) -> None:
    """Whoever looked at a store that was exchanged meanwhile has not looked at the one there is now."""
    await registry.register([declared()], "hash", NOW)
    moved = (await registry.register([declared(config={"path": "x"})], "hash", LATER))["s"]
    await registry.register([declared(config={"path": "y"})], "hash", LATER)
    await registry.looked(moved, None)
    assert (await registry.all())["s"].look_at == LATER


async def test_registering_again_writes_nothing(registry, monkeypatch) -> None:
    """Every command registers, so nothing to say costs no write."""
    await registry.register([declared(), declared("t")], "hash", NOW)

    async def refuse(kind, writes):
        raise AssertionError((kind, writes))

    monkeypatch.setattr(registry._backend, "compare_and_set", refuse)
    assert len(await registry.register([declared(), declared("t")], "minilm", LATER)) == 2


async def test_two_processes_begin_at_once(tmp_path) -> None:
    """Of several that record a store at once with different defaults, one decides and all have its answer."""
    backends = [SqliteBackend(tmp_path / "state.db") for _ in range(8)]
    defaults = [f"embedder-{i}" for i in range(len(backends))]
    answers = await asyncio.gather(
        *(
            StoreRegistry(backend).register([declared()], default, NOW)
            for backend, default in zip(backends, defaults, strict=True)
        )
    )
    [record] = (await StoreRegistry(backends[0]).all()).values()
    assert {answer["s"].embedder for answer in answers} == {record.embedder}
    for backend in backends:
        await backend.close()


async def test_two_change_a_record_at_once(registry) -> None:
    """Whoever acts on a record that is another by now changes nothing."""
    first = (await registry.register([declared()], "hash", NOW))["s"]
    await registry.adopt(first, "minilm")
    await registry.adopt(first, "wordllama")
    assert (await registry.all())["s"].embedder == "minilm"


async def test_forgotten(registry) -> None:
    """A forgotten store is a new one when it is recorded again; forgetting again does nothing."""
    await registry.register([declared()], "hash", NOW)
    await registry.forget("s")
    await registry.forget("s")
    assert await registry.all() == {}
    assert (await registry.register([declared()], "minilm", LATER))["s"].embedder == "minilm"


async def test_damaged_record_of_a_configured_store(registry, caplog) -> None:
    """It is left out, named, and recorded anew from the configuration; the other stores are as they were."""
    await registry.register([declared()], "hash", NOW)
    await registry._backend.compare_and_set(KIND, [Write("legal", b"{", None)])
    assert (await registry.all()).keys() == {"s"}
    assert "store 'legal'" in caplog.text
    legal = msgspec.structs.replace(declared(), slug="legal", embedder="minilm", is_default=False)
    made = await registry.register([declared(), legal], "hash", LATER)
    assert (made["legal"].embedder, made["legal"].look_at, made["s"].created_at) == ("minilm", LATER, NOW)
    assert await registry.all() == made


async def test_damaged_record_of_another_store(registry) -> None:
    """One that is not configured is left as it is."""
    await registry._backend.compare_and_set(KIND, [Write("old", b"{", None)])
    assert (await registry.register([declared()], "hash", NOW)).keys() == {"s"}
    assert (await registry._backend.read(KIND, "old")).value == b"{"
