"""Asks what the Dagster UI asks, through the same GraphQL schema, without a server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
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


@contextmanager
def ui_of(instance: dg.DagsterInstance, project: Path) -> Iterator["Ui"]:
    """A webserver's workspace of one project, in this process."""
    origin = InProcessCodeLocationOrigin(LoadableTargetOrigin(python_file=str(project)))
    with WorkspaceProcessContext(instance, InProcessWorkspaceLoadTarget(origin)) as workspace:
        yield Ui(workspace)


class Ui:
    """The Dagster UI's view of one instance. Each question is a new request, so nothing is cached in between."""

    def __init__(self, workspace: WorkspaceProcessContext) -> None:
        self._workspace = workspace

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
        return execute_dagster_graphql(self._workspace.create_request_context(), query, variables).data
