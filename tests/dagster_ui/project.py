"""A small ingest project with everything real: files, settings, Dagster instance, definitions, SQLite state."""

import asyncio
import json
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import dagster as dg
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.backfill import execute_backfill_iteration
from dagster_graphql.test.utils import execute_dagster_graphql

from ingest_assets import asset_keys
from ingest_assets.components import Components
from ingest_assets.definitions import build_definitions
from ingest_assets.engine.progress import UNWATCHED, Onlooker
from ingest_assets.jobs import INGEST
from ingest_assets.settings import Settings, load_settings
from resources.document_state.model import DocStatus
from tests.dagster_bridge.graphql_client import Ui

EXTRACTED, DEFAULT, ARCHIVE = asset_keys.EXTRACTED, asset_keys.built("default"), asset_keys.built("archive")
ALL = (EXTRACTED, DEFAULT, ARCHIVE)
# What the UI sets on the run it launches for a range of partitions, and for a single one.
RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
PARTITION = "dagster/partition"
LAUNCH_BACKFILL = """
mutation Launch($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) { ... on LaunchBackfillSuccess { backfillId } }
}"""
LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchRun(executionParams: $params) { ... on LaunchRunSuccess { run { runId } } }
}"""
REEXECUTE = """
mutation Again($params: ReexecutionParams!) {
  launchRunReexecution(reexecutionParams: $params) { ... on LaunchRunSuccess { run { runId } } }
}"""
CONFIG = """
default_embedder = "hash"
[[sources]]
name = "docs"
uri = "docs"
[[stores]]
slug = "default"
[[stores]]
slug = "archive"
"""
TEXTS = {
    "ferry.md": "# Ferry\n\nThe ferry leaves the northern pier at seven.",
    "harbour.txt": "The harbour master keeps the keys of the lock.",
    "tide.md": "# Tide\n\nThe gauge is read every six minutes.",
}


class Project:
    """What a person has before them: a folder of documents, and Dagster's pages about it."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.root = root
        self.instance = instance
        self.folder = root / "docs"
        self.folder.mkdir()
        self.configure()
        for name, text in TEXTS.items():
            self.write(name, text)

    def configure(self, more: str = "", **runs: object) -> None:
        """Write ingest.toml: the usual, `more`, and settings of the runs."""
        settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in {"parser_workers": 1, **runs}.items())
        (self.root / "ingest.toml").write_text(f"{CONFIG}{more}[runs]\n{settings}")
        self.__dict__.pop("settings", None)

    @cached_property
    def settings(self) -> Settings:
        """What ingest.toml says."""
        return load_settings({"INGEST_CONFIG": str(self.root / "ingest.toml")})

    def write(self, name: str, content: str | bytes) -> None:
        """Put a file into the source, or other content into it."""
        (self.folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    def definitions(self, onlooker: Onlooker = UNWATCHED) -> dg.Definitions:
        """What Dagster loads."""
        return build_definitions(self.settings, onlooker)

    def tick(self, sensor: str) -> dg.SensorResult | dg.SkipReason:
        """What a sensor says at one tick; its cursor is kept, and asset events are stored as the daemon does."""
        cursors = self.__dict__.setdefault("_cursors", {})
        context = dg.build_sensor_context(self.instance, cursor=cursors.get(sensor))
        result = self.definitions().get_repository_def().get_sensor_def(sensor)(context)
        cursors[sensor] = context.cursor
        for event in getattr(result, "asset_events", ()):
            self.instance.report_runless_asset_event(event)
        return result

    def discover(self) -> str:
        """Let the source's sensor list it; gives what the tick says."""
        return self.tick("discovery__docs").skip_reason.skip_message

    def pull(self, onlooker: Onlooker = UNWATCHED, **config) -> dg.DagsterRun:
        """A run of due documents, as the backlog sensor requests it, or with another configuration."""
        job = self.definitions(onlooker).resolve_job_def(INGEST)
        run_config = {"ops": {asset_keys.STEP: {"config": config}}}
        done = job.execute_in_process(run_config, instance=self.instance, raise_on_error=False)
        return self.instance.get_run_by_id(done.run_id)

    def ingest(self) -> dg.DagsterRun:
        """Discovery, then a pull run."""
        self.discover()
        return self.pull()

    def materialize(
        self, *keys: str, assets: Sequence[dg.AssetKey] = ALL, tags: dict[str, str] | None = None
    ) -> dg.DagsterRun:
        """What the UI launches for the range from the first to the last of these partitions, or for one alone."""
        where = {PARTITION: keys[0]} if len(keys) == 1 else {RANGE_START: keys[0], RANGE_END: keys[-1]}
        job = self.definitions().resolve_implicit_global_asset_job_def()
        done = job.execute_in_process(
            instance=self.instance, asset_selection=list(assets), tags=where | (tags or {}), raise_on_error=False
        )
        return self.instance.get_run_by_id(done.run_id)

    def launch(self, job_name: str) -> dg.DagsterRun:
        """The UI's launchpad: the job with no configuration and no partition."""
        with self.workspace() as workspace:
            (location,) = workspace.create_request_context().code_location_names
        selector = {"repositoryLocationName": location, "repositoryName": "__repository__", "jobName": job_name}
        answer = self.ask(LAUNCH, params={"selector": selector, "mode": "default", "runConfigData": {}})
        return self.instance.get_run_by_id(answer["launchRun"]["run"]["runId"])

    def reexecute(self, run: dg.DagsterRun) -> dg.DagsterRun:
        """The UI's "Re-execute all" of a run of the job."""
        from_here = {"parentRunId": run.run_id, "strategy": "ALL_STEPS"}
        answer = self.ask(REEXECUTE, params=from_here)["launchRunReexecution"]
        return self.instance.get_run_by_id(answer["run"]["runId"])

    def key(self, name: str) -> str:
        """The partition of a file."""
        return next(doc.document_id for doc in self.docs() if doc.source_uri == f"docs:{name}")

    def doc(self, name: str) -> DocStatus:
        """The record of a file's document."""
        return next(doc for doc in self.docs() if doc.source_uri == f"docs:{name}")

    def damage(self, name: str) -> str:
        """Damage the record of a file's document; gives its id."""
        with sqlite3.connect(self.root / ".ingest/state.db") as state:
            query = "SELECT key FROM records WHERE kind = 'document' AND key LIKE ?"
            [document_id] = state.execute(query, (f"{name}%",)).fetchone()
            state.execute("UPDATE records SET value = x'00' WHERE key = ?", (document_id,))
        return document_id

    def docs(self) -> list[DocStatus]:
        """Every record."""
        return asyncio.run(self._docs())

    def partitions(self) -> list[str]:
        """Every partition, in the order of the partitions page."""
        return list(self.instance.get_dynamic_partitions("documents"))

    def in_store(self, slug: str) -> set[str]:
        """The documents a store holds."""
        return {
            held.document_id
            for held in asyncio.run(Components(self.settings).target(slug)).store.held_documents("", 1000)
        }

    def statuses(self, asset: dg.AssetKey) -> dict[str, set[str]]:
        """The partitions of an asset by the status that its page shows."""
        with self.workspace() as workspace:
            return Ui(workspace).statuses(asset)

    def ask(self, query: str, **variables: object) -> dict:
        """What the webserver answers."""
        with self.workspace() as workspace:
            return execute_dagster_graphql(workspace.create_request_context(), query, variables).data

    def backfill(self, assets: Sequence[dg.AssetKey], keys: Sequence[str]) -> tuple[str, list[dg.DagsterRun]]:
        """A backfill launched as the UI launches it and driven as the daemon does: its status and its runs."""
        params = {"assetSelection": [{"path": asset.path} for asset in assets], "partitionNames": list(keys)}
        with self.workspace() as workspace:
            context = workspace.create_request_context()
            answer = execute_dagster_graphql(context, LAUNCH_BACKFILL, {"params": params})
            backfill_id = answer.data["launchPartitionBackfill"]["backfillId"]
            for _ in range(4):
                list(execute_backfill_iteration(workspace, logging.getLogger("backfill")))
        runs = self.instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": backfill_id}))
        return self.instance.get_backfill(backfill_id).status.value, list(runs)

    @contextmanager
    def workspace(self) -> Iterator[WorkspaceProcessContext]:
        """The webserver's and the daemon's view of the code location, in this process."""
        origin = InProcessCodeLocationOrigin(LoadableTargetOrigin(module_name="ingest_assets.definitions"))
        with WorkspaceProcessContext(self.instance, InProcessWorkspaceLoadTarget(origin)) as workspace:
            yield workspace

    async def _docs(self) -> list[DocStatus]:
        async with Components(self.settings) as components:
            return [doc async for doc in components.state.iter_statuses(lambda _: True)]
