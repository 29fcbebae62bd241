"""The assets: every document's extraction, and its place in each store, made by one step that streams documents."""

from collections.abc import Iterator
from urllib.parse import quote

import dagster as dg

from ingest_assets import asset_keys
from ingest_assets.components import Components
from ingest_assets.engine.progress import UNWATCHED, Onlooker
from ingest_assets.partitions import documents
from ingest_assets.runs.dagster_reporter import code_version
from ingest_assets.runs.ingest_step import ingest_documents
from ingest_assets.runs.interruption import run_interruptibly
from ingest_assets.runs.page_links import page_link
from ingest_assets.runs.run_input import IngestConfig, kind_of
from ingest_assets.runs.run_outcome import check_ceiling, log_outcome, raise_if_failed, tag_run
from ingest_assets.settings import Settings
from ingest_assets.targets import declared_stores, link_parts
from resources.dagster_resources import ArtifactStoreResource, DocumentStateStoreResource
from resources.document_state.store_registry import DeclaredStore

_SCATTERED = (
    "To try scattered documents again, use `ingest retry DOCUMENT…`: Dagster splits a scattered backfill into one run "
    "for each contiguous range."
)


def build_source_assets(settings: Settings) -> list[dg.AssetSpec]:
    """Each declared source as an external asset, upstream of everything."""
    public_url = settings.api.public_url
    return [
        dg.AssetSpec(
            asset_keys.source(name),
            group_name="sources",
            kinds={source.kind},
            description="Where documents come from. A sensor lists it.",
            metadata={"dagster/uri": source.uri, **page_link(public_url, f"/?source={quote(name)}")},
        )
        for name, source in settings.open_sources().items()
    ]


def build_document_assets(settings: Settings, onlooker: Onlooker = UNWATCHED) -> dg.AssetsDefinition:
    """`extracted` and a `built/<store>` for each store, partitioned by document.

    Args:
        settings: the configuration.
        onlooker: told how it goes on, in the process that does it.
    """

    @dg.multi_asset(
        name=asset_keys.STEP,
        specs=[_extracted(settings), *_built(settings)],
        partitions_def=documents,
        # Dagster's default is a run for each partition, and each run takes 4 s to start.
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
    )
    def ingest(
        context: dg.AssetExecutionContext,
        config: IngestConfig,
        document_state: DocumentStateStoreResource,
        artifacts: ArtifactStoreResource,
    ) -> Iterator[dg.MaterializeResult[None]]:
        opened = Components(settings, document_state.open(), artifacts.open())
        try:
            reporter = run_interruptibly(ingest_documents(context, config, opened, onlooker))
        except dg.DagsterExecutionInterruptedError:
            # Ctrl-C or SIGTERM: without a word from us Dagster counts it as a failure.
            context.instance.report_run_canceling(context.run)
            raise
        log_outcome(context.log, reporter)
        check_ceiling(context.instance, reporter)
        tag_run(context.instance, context.run, kind_of(context, config), reporter)
        raise_if_failed(reporter, settings.runs.fail_run_on)
        yield from ()  # every document's materialization has been reported already, in batches

    return ingest


def _extracted(settings: Settings) -> dg.AssetSpec:
    return dg.AssetSpec(
        asset_keys.EXTRACTED,
        deps=[asset_keys.source(source.name) for source in settings.sources],
        group_name="documents",
        kinds={"python"},
        owners=["team:ingest"],
        code_version=code_version(Components(settings).extraction_parts),
        description=f"Chunks and knowledge entries of each document. {_SCATTERED}",
        metadata=page_link(settings.api.public_url, "/"),
        skippable=True,
    )


def _built(settings: Settings) -> list[dg.AssetSpec]:
    return [
        dg.AssetSpec(
            asset_keys.built(store.slug),
            deps=[asset_keys.EXTRACTED],
            group_name="stores",
            kinds={store.kind},
            owners=["team:ingest"],
            code_version=_store_code_version(store),
            description=f"Documents in the store '{store.name}', searchable. {_SCATTERED}",
            metadata={
                "store": store.name,
                "kind": store.kind,
                "is_default": store.is_default,
                **page_link(settings.api.public_url, "/stores"),
            },
            skippable=True,
        )
        for store in declared_stores(settings)
    ]


def _store_code_version(store: DeclaredStore) -> str | None:
    """The code version of a store's asset; None, which Dagster compares with nothing, if only a record knows it."""
    return code_version(link_parts(store.embedder, store.kind)) if store.embedder else None
