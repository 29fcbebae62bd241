"""Checks: what must be true of all documents, computed from state and stores."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

import dagster as dg

from ingest_assets import asset_keys
from ingest_assets.components import Components
from ingest_assets.parsing.result import MOST_EMPTY_PAGES
from ingest_assets.runs.run_outcome import CEILING_CHECK
from ingest_assets.settings import Settings
from ingest_assets.upkeep.staleness import stale_parts
from resources.dagster_resources import DocumentStateStoreResource
from resources.document_state.model import GONE, LinkState, Status
from resources.document_state.take_up import is_held_back
from resources.store.store import HeldDocument, Store

_OF_PARTITIONS = {"dagster/partition", "dagster/asset_partition_range_start"}
_EXAMPLES = 20
_PAGE = 10_000


def build_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    """The checks of `extracted` and of each store."""
    extracted = dg.AssetCheckSpec(
        "every_document_has_chunks",
        asset=asset_keys.EXTRACTED,
        description="No document counts as extracted without a chunk.",
    )
    pages = dg.AssetCheckSpec(
        "pages_have_text",
        asset=asset_keys.EXTRACTED,
        description="No document has more than a fifth of its pages without text: such pages are often scanned.",
    )
    ceiling = dg.AssetCheckSpec(
        CEILING_CHECK,
        asset=asset_keys.EXTRACTED,
        description="No document is held back because its extraction would cost more than `[spend]` allows.",
    )
    checks = [
        _build_check(settings, extracted, _check_chunks),
        _build_check(settings, pages, _check_pages),
        _build_check(settings, ceiling, _check_ceiling),
    ]
    for store in settings.stores:
        matches = dg.AssetCheckSpec(
            "store_matches_state",
            asset=asset_keys.built(store.slug),
            description="The store holds what the records say, and nothing else.",
        )
        stale = dg.AssetCheckSpec(
            "nothing_stale",
            asset=asset_keys.built(store.slug),
            description="Every document stands in the store at the current configuration; says which parts differ.",
        )
        checks.append(_build_check(settings, matches, partial(_check_store, slug=store.slug)))
        checks.append(_build_check(settings, stale, partial(_check_stale, slug=store.slug)))
    return checks


def _build_check(
    settings: Settings,
    spec: dg.AssetCheckSpec,
    examine: Callable[[Components], Coroutine[None, None, dg.AssetCheckResult]],
) -> dg.AssetChecksDefinition:
    """A check that is left out of runs of partitions.

    Dagster adds an asset's checks to every run that a backfill launches. Ours look at all documents, and a backfill of
    scattered ones has hundreds of runs.
    """

    @dg.multi_asset_check(name=spec.get_python_identifier(), specs=[spec], can_subset=True)
    def check(
        context: dg.AssetCheckExecutionContext, document_state: DocumentStateStoreResource
    ) -> Iterator[dg.AssetCheckResult]:
        if _OF_PARTITIONS & context.run.tags.keys():
            context.log.info("It looks at all documents, so it is left out here. The job `check_documents` runs it.")
            return
        yield asyncio.run(examine(Components(settings, document_state.open())))

    return check


async def _check_chunks(components: Components) -> dg.AssetCheckResult:
    async with components:
        done = components.state.iter_statuses(lambda label: label.extraction is Status.COMPLETED)
        n, without = 0, []
        async for doc in done:
            n += 1
            if not doc.n_chunks or not doc.artifact:
                without.append(doc.document_id)
    return _result(without, {"documents": n}, components.state.damaged)


async def _check_pages(components: Components) -> dg.AssetCheckResult:
    async with components:
        n, lacking = 0, []
        async for doc in components.state.iter_statuses(lambda label: label.extraction is Status.COMPLETED):
            n += bool(doc.n_pages)
            if doc.n_empty_pages > MOST_EMPTY_PAGES * doc.n_pages:
                lacking.append(doc.document_id)
    return _result(lacking, {"documents": n}, components.state.damaged, dg.AssetCheckSeverity.WARN)


async def _check_store(components: Components, slug: str) -> dg.AssetCheckResult:
    async with components:
        held = _all_held((await components.target(slug)).store)
        n, wrong = 0, []
        async for doc in components.state.iter_statuses(lambda label: any(link[0] == slug for link in label.links)):
            link = doc.links[slug]
            found = held.pop(doc.document_id, None)
            n += 1
            if link.state is LinkState.INGESTED and (found is None or found.chunkset_hash != link.chunkset_hash):
                wrong.append(doc.document_id)
        # What the store holds beyond the records: documents whose link was not published yet do no harm.
        known = await components.state.get_many(list(held))
        wrong += [key for key in held if key not in known or known[key].presence in GONE]
    return _result(wrong, {"documents": n}, components.state.damaged)


async def _check_ceiling(components: Components) -> dg.AssetCheckResult:
    async with components:
        counts = await components.state.counts()
    n = sum(n for label, n in counts.items() if is_held_back(label.presence, label.extraction, label.extraction_reason))
    return dg.AssetCheckResult(passed=not n, severity=dg.AssetCheckSeverity.WARN, metadata={"held back": n})


async def _check_stale(components: Components, slug: str) -> dg.AssetCheckResult:
    async with components:
        counts: Counter[str] = Counter()
        configured = await components.configured()
        for label, n in (await components.state.counts()).items():
            if parts := stale_parts(label, slug, configured):
                counts[", ".join(parts)] += n
    return dg.AssetCheckResult(passed=not counts, severity=dg.AssetCheckSeverity.WARN, metadata={"stale": dict(counts)})


def _all_held(store: Store) -> dict[str, HeldDocument]:
    held: dict[str, HeldDocument] = {}
    after = ""
    while page := store.held_documents(after, _PAGE):
        held |= {document.document_id: document for document in page}
        after = page[-1].document_id
    return held


def _result(
    wrong: Sequence[str],
    metadata: dict[str, int],
    damaged: Collection[str],
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
) -> dg.AssetCheckResult:
    """A check's result. Of a document whose record is damaged nobody can say that it is right."""
    every = [*wrong, *sorted(set(damaged).difference(wrong))]
    found: dict[str, Any] = {
        **metadata,
        "wrong": len(every),
        "of them with a damaged record": len(damaged),
        "examples": dg.MetadataValue.json(every[:_EXAMPLES]),
    }
    return dg.AssetCheckResult(passed=not every, severity=severity, metadata=found)
