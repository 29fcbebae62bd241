"""Asks what the Dagster UI asks, through the same GraphQL schema, without a server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster._core.test_utils import in_process_test_workspace
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster_graphql.test.utils import execute_dagster_graphql

ASSET_PAGE = """
query Asset($path: [String!]!) {
  assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
    partitionStats { numMaterialized numFailed numMaterializing numPartitions }
    assetPartitionStatuses { ... on DefaultPartitionStatuses {
      materializedPartitions failedPartitions unmaterializedPartitions materializingPartitions } }
    assetMaterializations(limit: 3) { partition runId stepKey }
  } }
}"""
RUN_PAGE = """
query Run($run: ID!) {
  runOrError(runId: $run) { ... on Run {
    status
    assets { key { path } }
    assetMaterializations { partition assetKey { path } }
    stats { ... on RunStatsSnapshot { materializations } }
  } }
}"""


class Ui:
    """The Dagster UI's view of one instance. Each question is a new request, so nothing is cached in between."""

    def __init__(self, instance: dg.DagsterInstance, project: Path) -> None:
        self._instance = instance
        self._origin = LoadableTargetOrigin(python_file=str(project))

    def asset(self, asset_key: dg.AssetKey) -> dict:
        """What the asset page shows."""
        return self._ask(ASSET_PAGE, {"path": asset_key.path})["assetNodeOrError"]

    def run(self, run_id: str) -> dict:
        """What the run page shows."""
        return self._ask(RUN_PAGE, {"run": run_id})["runOrError"]

    def statuses(self, asset_key: dg.AssetKey) -> dict[str, set[str]]:
        """The partitions the asset page lists, by the status it gives them. It lists failed ones as missing too."""
        found = self.asset(asset_key)["assetPartitionStatuses"]
        names = ("materialized", "failed", "materializing", "unmaterialized")
        listed = {name: set(found[f"{name}Partitions"]) for name in names}
        listed["unmaterialized"] -= listed["failed"] | listed["materializing"]
        return {name: keys for name, keys in listed.items() if keys}

    def counts(self, asset_key: dg.AssetKey) -> tuple[int, int, int]:
        """Materialized, failed and running, as the asset page counts them."""
        stats = self.asset(asset_key)["partitionStats"]
        return stats["numMaterialized"], stats["numFailed"], stats["numMaterializing"]

    def _ask(self, query: str, variables: dict) -> dict:
        with self._context() as context:
            return execute_dagster_graphql(context, query, variables).data

    @contextmanager
    def _context(self) -> Iterator:
        with in_process_test_workspace(self._instance, self._origin) as context:
            yield context
