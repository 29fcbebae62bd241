"""A small Dagster project shaped like ours: one step, two partitioned assets, a check, runs without partition tags."""

import dagster as dg

from ingest_assets.event_log.partition_events import PartitionMaterialized, report_failed, report_materialized

DOCUMENTS = dg.DynamicPartitionsDefinition(name="documents")
EXTRACTED = dg.AssetKey("extracted")
BUILT = dg.AssetKey(["built", "default"])
STEP = "ingest"


class Batch(dg.Config):
    """What a run shall do: these documents succeed, those fail."""

    succeed: list[str] = []  # noqa: RUF012 - Dagster's Config takes lists and copies the default
    fail: list[str] = []  # noqa: RUF012


def materialized(asset_key: dg.AssetKey, *partitions: str, version: str = "v1") -> list[PartitionMaterialized]:
    return [
        PartitionMaterialized(
            asset_key=asset_key,
            partition=partition,
            data_version=f"{version}-{partition}",
            code_version="7",
            metadata={"chunks": 3, "source_uri": f"docs:{partition}", "dagster/row_count": dg.IntMetadataValue(3)},
            tags={"kind": "test"},
        )
        for partition in partitions
    ]


@dg.multi_asset(
    name=STEP,
    specs=[
        dg.AssetSpec(EXTRACTED, partitions_def=DOCUMENTS, skippable=True, code_version="7"),
        dg.AssetSpec(BUILT, partitions_def=DOCUMENTS, skippable=True, code_version="7", deps=[EXTRACTED]),
    ],
    check_specs=[dg.AssetCheckSpec("within_spend_ceiling", asset=EXTRACTED)],
    can_subset=True,
)
def ingest(context: dg.AssetExecutionContext, config: Batch):
    for asset_key in (EXTRACTED, BUILT):
        report_materialized(context.instance, context.run, STEP, materialized(asset_key, *config.succeed))
        report_failed(context.instance, context.run, STEP, asset_key, config.fail)
    # Not AssetCheckResult: without a partition tag it asks for the run's partitions and raises.
    yield dg.AssetCheckEvaluation(asset_key=EXTRACTED, check_name="within_spend_ceiling", passed=True, metadata={})
    if config.fail:
        raise dg.Failure(f"{len(config.fail)} documents failed")


defs = dg.Definitions(
    assets=[ingest],
    jobs=[dg.define_asset_job("ingest_documents", selection=[EXTRACTED, BUILT])],
    executor=dg.in_process_executor,
)


def run_batch(instance: dg.DagsterInstance, *, succeed: list[str], fail: list[str], tags=None):
    """Run the job in this process, as the command line does."""
    return defs.resolve_job_def("ingest_documents").execute_in_process(
        run_config={"ops": {STEP: {"config": {"succeed": succeed, "fail": fail}}}},
        instance=instance,
        raise_on_error=False,
        tags=tags,
    )
