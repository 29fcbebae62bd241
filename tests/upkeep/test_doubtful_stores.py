"""A store that may hold something else than the records say: that is told, and sensors have it looked at."""

import asyncio

from ingest_assets.components import Components
from ingest_assets.sensor_ticks import count_due
from ingest_assets.settings import Settings, StoreSettings, load_settings
from ingest_assets.upkeep.settling import doubts, settle_stores
from resources.clock import utc_now

FILE = {"path": "legal.duckdb"}


def settings(tmp_path, **changes) -> Settings:
    """A store `default`, and another one as given."""
    stores = (StoreSettings(slug="default"), StoreSettings(slug="legal", **changes))
    return Settings(stores=stores, base=tmp_path, default_embedder="hash", extractor="none")


async def begun(found: Settings) -> Components:
    """The parts of a command that works, as it begins."""
    components = Components(found)
    await components.register_stores()
    return components


async def test_told_from_the_moment_it_is_configured(tmp_path) -> None:
    """Nobody has to run anything first: what is said of such a store is doubted as soon as it may be wrong."""
    async with await begun(settings(tmp_path)) as components:
        assert await doubts(components) == []
    async with Components(settings(tmp_path, config=FILE)) as components:
        [told] = await doubts(components)
        assert told.startswith("Store 'legal' may hold something else")
        assert await doubts(components, "default") == []
        assert (await components.store_registry.all())["legal"].look_at is None


async def test_a_run_is_started_for_it_once(tmp_path, monkeypatch) -> None:
    """Though nothing is due, the sensors start a run, which looks; then, and by an older configuration, none."""
    first = settings(tmp_path)
    async with await begun(first):
        pass
    configure(tmp_path, monkeypatch, '\nconfig = { path = "legal.duckdb" }')
    assert await n_due(first) == 1
    async with await begun(load_settings()) as components:
        assert await n_due(first) == 1
        await settle_stores(components, lambda _: None)
        assert await doubts(components) == []
    assert await n_due(first) == 0


async def test_a_store_that_cannot_be_read(tmp_path, monkeypatch) -> None:
    """That is told; the doubt stays, and the sensors start a run for it only after a pause."""
    async with await begun(settings(tmp_path)):
        pass
    (tmp_path / "legal.duckdb").write_bytes(b"no such file " * 1000)
    configure(tmp_path, monkeypatch, '\nconfig = { path = "legal.duckdb" }')
    async with await begun(load_settings()) as components:
        told: list[str] = []
        await settle_stores(components, told.append)
        assert "'legal'" in told[0]
        assert len(await doubts(components)) == 1
        assert (await components.store_registry.all())["legal"].look_at > utc_now()
        assert await n_due(components.settings) == 0
        (tmp_path / "legal.duckdb").unlink()
        await settle_stores(components, told.append)
        assert (len(told), await doubts(components)) == (1, [])


def configure(tmp_path, monkeypatch, more: str) -> None:
    """Write the configuration that runs read."""
    file = tmp_path / "ingest.toml"
    head = 'default_embedder = "hash"\nextractor = "none"\n[[stores]]\nslug = "default"\n'
    file.write_text(f'{head}[[stores]]\nslug = "legal"{more}\n')
    monkeypatch.setenv("INGEST_CONFIG", str(file))


async def n_due(found: Settings) -> int:
    """What the backlog sensor of a process counts that has read its configuration once."""
    return await asyncio.to_thread(count_due(found), 10)
