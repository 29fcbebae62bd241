"""Records compared with what Dagster knows: which documents are partitions, and which are materialized."""

from collections.abc import AsyncIterator, Collection, Iterator

import dagster as dg

from ingest_assets import asset_keys
from ingest_assets.partitions import documents
from ingest_assets.upkeep.verify.difference import DAGSTER, Difference, What
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.model import DocStatus, LinkState, Status, is_partition
from resources.document_state.stored_record import StoredRecord
from resources.document_state.transitions import IMPORTED_PART
from resources.document_state.workers import WorkerWatch


async def compare_partitions(
    state: DocumentStateStore,
    watch: WorkerWatch,
    instance: dg.DagsterInstance,
    stores: Collection[str],
    chosen: Collection[str] | None,
) -> list[Difference]:
    """What differs of all documents, or of the chosen ones. A few calls, however many documents there are.

    Documents in a worker's hands are left out: it has published some of them, and not told Dagster yet.
    """
    in_hands = {key for worker in await watch.all() for key in worker.claimed}
    known = _known(instance, chosen)
    assets = {"": asset_keys.EXTRACTED, **{slug: asset_keys.built(slug) for slug in stores}}
    materialized = {name: instance.get_materialized_partitions(key) for name, key in assets.items()}
    found = []
    unseen = set(known)
    async for stored in _records(state, chosen):
        unseen.discard(stored.document_id)
        if stored.doc is None or stored.document_id in in_hands:
            continue
        doc = stored.doc
        wanted = is_partition(doc.presence, doc.extraction.status)
        if not wanted:
            if doc.document_id in known:
                found.append(Difference(doc.document_id, DAGSTER, What.PARTITION_UNWANTED, doc.lifecycle))
            continue
        if doc.document_id not in known:
            found.append(Difference(doc.document_id, DAGSTER, What.NO_PARTITION))
        if missing := [name for name in _complete_in(doc, stores) if doc.document_id not in materialized[name]]:
            said = ", ".join(assets[name].to_user_string() for name in missing)
            found.append(Difference(doc.document_id, DAGSTER, What.NOT_REPORTED, said))
    return found + [Difference(key, DAGSTER, What.UNKNOWN, "no record") for key in sorted(unseen)]


async def _records(state: DocumentStateStore, chosen: Collection[str] | None) -> AsyncIterator[StoredRecord]:
    if chosen is None:
        async for stored in state.iter_examined():
            yield stored
    else:
        for stored in (await state.examine_many(chosen)).values():
            yield stored


def _complete_in(doc: DocStatus, stores: Collection[str]) -> Iterator[str]:
    """The assets Dagster must show the document in: "" for its extraction, else the store."""
    if doc.extraction.status is Status.COMPLETED and IMPORTED_PART not in doc.extraction.parts:
        yield ""
        for slug in stores:
            if slug in doc.due_in and slug in doc.links and doc.links[slug].state is LinkState.INGESTED:
                yield slug


def _known(instance: dg.DagsterInstance, chosen: Collection[str] | None) -> set[str]:
    name = documents.name or ""
    if chosen is None:
        return set(instance.get_dynamic_partitions(name))
    return set(instance.get_existing_dynamic_partitions(name, list(chosen))) if chosen else set()
