"""What the sensors call: each opens what it needs, does one thing, and closes it."""

import asyncio
from collections.abc import Callable

import dagster as dg
import msgspec

from ingest_assets.components import Components
from ingest_assets.discovering import discovery_of
from ingest_assets.partitions import DagsterPartitions
from ingest_assets.runs.recovery import Recovered, recover
from ingest_assets.settings import ConfigurationError, Settings, load_settings
from ingest_assets.targets import declared_stores
from ingest_assets.upkeep.settling import doubtful_stores
from resources.clock import utc_now
from resources.document_source.overlap import overlaps
from resources.document_state.impossible_waits import end_impossible_waits
from resources.document_state.process_identity import this_process
from resources.document_state.workers import Observation, WorkerWatch
from resources.embedder.open_embedder import UnknownEmbedderError
from resources.extractor.extractor import ExtractorConfigError
from resources.extractor.open_extractor import UnknownExtractorError
from resources.store.store import StoreConfigError
from sensors.discovered import Discovered, total

_WRONG_CONFIGURATION = (
    ConfigurationError,
    StoreConfigError,
    UnknownEmbedderError,
    UnknownExtractorError,
    ExtractorConfigError,
)
_LOOKED_AT = 100  # of the longest due: a tick reads so many records, however many are due


class _Cursor(msgspec.Struct):
    """What the sweep saw. Monotonic clocks mean nothing after a reboot, so the boot is kept with them."""

    boot_id: str
    observations: dict[str, Observation]


def discover_source(settings: Settings, name: str) -> Callable[[dg.DagsterInstance], Discovered]:
    """What the discovery sensor of a declared source calls."""
    return lambda instance: asyncio.run(_discover(settings, instance, lambda source: source == name))


def discover_remembered(settings: Settings) -> Callable[[dg.DagsterInstance], Discovered]:
    """What the discovery sensor of the folders named on the command line calls."""
    declared = {source.name for source in settings.sources}
    return lambda instance: asyncio.run(_discover(settings, instance, lambda source: source not in declared))


def count_due(settings: Settings) -> Callable[[int], int]:
    """What the backlog sensor calls."""
    return lambda limit: asyncio.run(_count_due(settings, limit))


def why_not() -> str:
    """What the backlog sensor calls before it starts runs.

    Each run is a process that reads the configuration anew, so what counts is how it stands now: it may have been
    edited since this process read it.
    """
    try:
        settings = load_settings()
        declared_stores(settings)
        Components(settings).extractor.check()
    except _WRONG_CONFIGURATION as error:
        return str(error)
    return ""


def sweep(settings: Settings) -> Callable[[dg.DagsterInstance, str | None], tuple[Recovered, str]]:
    """What the sensor of interrupted runs calls."""
    return lambda instance, cursor: asyncio.run(_sweep(settings, instance, cursor))


async def _discover(settings: Settings, instance: dg.DagsterInstance, wanted: Callable[[str], bool]) -> Discovered:
    async with Components(settings) as components:
        found = {}
        sources = await components.sources()
        for name, source in sources.items():
            if wanted(name):
                discovery = discovery_of(components, source)
                found[name] = await discovery.run(
                    DagsterPartitions(instance), utc_now, limit=settings.discovery.changes_per_tick
                )
        whole = total(found)
        whole.overlaps = overlaps(sources.values(), found)
        return whole


async def _count_due(settings: Settings, limit: int) -> int:
    """How many are due, without those whose record is damaged: no run can do them, and they stay the longest due.

    A store that is to be compared with the records counts as one: the run that compares it does what comes of that.
    """
    async with Components(settings) as components:
        due = await components.state.list_due(utc_now(), limit)
        await components.state.get_many(due[:_LOOKED_AT])
        return len(due) - len(components.state.damaged) or await _count_doubtful()


async def _count_doubtful() -> int:
    """How many stores are to be compared now, by the configuration that a run would read."""
    try:
        settings = load_settings()
    except ConfigurationError:
        return 0
    async with Components(settings) as components:
        return sum(look_at <= utc_now() for look_at in (await doubtful_stores(components)).values())


async def _sweep(settings: Settings, instance: dg.DagsterInstance, cursor: str | None) -> tuple[Recovered, str]:
    boot_id = this_process().boot_id
    seen = msgspec.json.decode(cursor, type=_Cursor) if cursor else _Cursor(boot_id, {})
    observations = seen.observations if seen.boot_id == boot_id else {}
    async with Components(settings) as components:
        await end_impossible_waits(components.state, settings.retry_policy, utc_now())
        watch = WorkerWatch(components.backend, settings.lease, observations)
        done = await recover(components, instance, watch)
        return done, msgspec.json.encode(_Cursor(boot_id, watch.observations)).decode()
