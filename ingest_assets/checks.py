"""Checks: what must be true of all documents, computed from state and stores."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import dagster as dg

from ingest_assets import asset_keys
from ingest_assets.components import Components
from ingest_assets.settings import Settings
from resources.dagster_resources import DocumentStateStoreResource
from resources.document_state.label import DocumentLabel, config_hash
from resources.document_state.model import LinkState, Presence, Status
from resources.store.store import HeldDocument, Store

_EXAMPLES = 20
_PAGE = 10_000


def build_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    """The checks of `extracted` and of each store."""
    checks = [_every_document_has_chunks(settings)]
    for store in settings.stores:
        checks += [_store_matches_state(settings, store.slug), _nothing_stale(settings, store.slug)]
    return checks


def _every_document_has_chunks(settings: Settings) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=asset_keys.EXTRACTED, description="No document counts as extracted without a chunk.")
    def every_document_has_chunks(document_state: DocumentStateStoreResource) -> dg.AssetCheckResult:
        return asyncio.run(_check_chunks(Components(settings, document_state.open())))

    return every_document_has_chunks


def _store_matches_state(settings: Settings, slug: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=asset_keys.built(slug), description="The store holds what the records say, and nothing else.")
    def store_matches_state(document_state: DocumentStateStoreResource) -> dg.AssetCheckResult:
        return asyncio.run(_check_store(Components(settings, document_state.open()), slug))

    return store_matches_state


def _nothing_stale(settings: Settings, slug: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=asset_keys.built(slug), description="Every document stands in the store at the current configuration."
    )
    def nothing_stale(document_state: DocumentStateStoreResource) -> dg.AssetCheckResult:
        return asyncio.run(_check_stale(Components(settings, document_state.open()), slug))

    return nothing_stale


async def _check_chunks(components: Components) -> dg.AssetCheckResult:
    async with components:
        done = components.state.iter_statuses(lambda label: label.extraction is Status.COMPLETED)
        n, without = 0, []
        async for doc in done:
            n += 1
            if not doc.n_chunks or not doc.artifact:
                without.append(doc.document_id)
    return _result(without, {"documents": n})


async def _check_store(components: Components, slug: str) -> dg.AssetCheckResult:
    async with components:
        held = _all_held(components.target(slug).store)
        n, wrong = 0, []
        async for doc in components.state.iter_statuses(lambda label: any(link[0] == slug for link in label.links)):
            link = doc.links[slug]
            found = held.pop(doc.document_id, None)
            n += 1
            if link.state is LinkState.INGESTED and (found is None or found.chunkset_hash != link.chunkset_hash):
                wrong.append(doc.document_id)
        # What the store holds beyond the records: documents whose link was not published yet do no harm.
        known = await components.state.get_many(list(held))
        wrong += [key for key in held if key not in known or known[key].presence is Presence.DELETED]
    return _result(wrong, {"documents": n})


async def _check_stale(components: Components, slug: str) -> dg.AssetCheckResult:
    async with components:
        wanted = config_hash(components.target(slug).parts)
        extraction = config_hash(components.extraction_parts)
        counts: Counter[str] = Counter()
        for label, n in (await components.state.counts()).items():
            why = _why_stale(label, slug, extraction, wanted)
            if why:
                counts[why] += n
    return dg.AssetCheckResult(passed=not counts, severity=dg.AssetCheckSeverity.WARN, metadata={"stale": dict(counts)})


def _why_stale(label: DocumentLabel, slug: str, extraction: str, store: str) -> str:
    """Why documents of a label are stale in a store; "" if they are not, or not there."""
    if label.presence is not Presence.PRESENT:
        return ""
    for name, state, config in label.links:
        if name != slug:
            continue
        if state is LinkState.STALE:
            return "content changed"
        if label.extraction is Status.COMPLETED and label.extraction_config != extraction:
            return "extraction configuration changed"
        if config != store:
            return "store configuration changed"
    return ""


def _all_held(store: Store) -> dict[str, HeldDocument]:
    held: dict[str, HeldDocument] = {}
    after = ""
    while page := store.held_documents(after, _PAGE):
        held |= {document.document_id: document for document in page}
        after = page[-1].document_id
    return held


def _result(wrong: Sequence[str], metadata: dict[str, int]) -> dg.AssetCheckResult:
    examples = dg.MetadataValue.json(list(wrong[:_EXAMPLES]))
    return dg.AssetCheckResult(passed=not wrong, metadata={**metadata, "wrong": len(wrong), "examples": examples})
