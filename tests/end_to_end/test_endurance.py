"""Rebuilds, deletions and collections of garbage, killed at random moments over and over in one project.

`ENDURANCE_KILLS` says how many processes are killed, `ENDURANCE_SEED` which of all histories it is, `ENDURANCE_STORES`
of which kind the stores are (`duckdb`, `pgvector`, `opensearch`), `ENDURANCE_STATE` where the state is (`sqlite`, `s3`
on SeaweedFS, `dynamodb` on DynamoDB Local).
"""

import os
import random

import dagster as dg
import pytest

from resources.document_state.model import DocStatus, LinkState, Presence, Status, is_partition
from tests.end_to_end.changing_pile import ChangingPile, texts_of
from tests.end_to_end.project import Project
from tests.end_to_end.two_stores import SLUGS
from tests.servers.clients import patient, s3_client

_KILLS = int(os.environ.get("ENDURANCE_KILLS", "2"))
_SEED = int(os.environ.get("ENDURANCE_SEED", "0"))
_STORES = os.environ.get("ENDURANCE_STORES", "duckdb")
_STATE = os.environ.get("ENDURANCE_STATE", "sqlite")


@pytest.fixture
def state(request: pytest.FixtureRequest) -> str:
    """The URI of an empty state store; "" for the default one."""
    if _STATE == "dynamodb":
        prefix = request.getfixturevalue("table_prefix")
        return patient(f"dynamodb://{prefix}endurance?endpoint_url={request.getfixturevalue('dynamodb_local')}")
    if _STATE == "s3":
        bucket, url = request.getfixturevalue("bucket_name"), request.getfixturevalue("seaweedfs").url
        s3_client(url).create_bucket(Bucket=bucket)
        return patient(f"s3://{bucket}/state?endpoint_url={url}")
    return ""


@pytest.fixture
def pile(project: Project, state: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ChangingPile:
    """Documents that nobody has ingested yet."""
    monkeypatch.setenv("DAGSTER_HOME", str(project.root / ".ingest/dagster"))
    pile = ChangingPile(project, random.Random(_SEED), request.getfixturevalue(f"{_STORES}_stores"), state)
    if state:
        assert project.run("state", "create").returncode == 0
    return pile


def test_nothing_is_lost_whoever_is_killed(pile: ChangingPile) -> None:
    """After each kill and a resume records, artifacts, stores and partitions are right; then gc leaves no garbage."""
    project = pile.project
    project.json("run")
    killed: list[str] = []
    while len(killed) < _KILLS:
        pile.change()
        killed += pile.kill()
        resumed = project.json("run", "--mode", "resume")
        assert (resumed["n_failed"], resumed["source_errors"]) == (0, []), killed
        assert_whole(pile, killed)
    for _ in range(2):  # the first may finish a collection that began before the last artifacts were put
        project.json("gc", "--wait")
    kept = {kept.key for page in pile.artifacts.pages() for kept in page}
    assert kept == {doc.artifact for doc in pile.records().values() if doc.artifact}, killed


def assert_whole(pile: ChangingPile, killed: list[str]) -> None:
    """Fail unless everything is as it is to be, by the program's own word and by looking around it."""
    verified = pile.project.json("verify", code=0)
    assert (verified["n_differences"], verified["n_busy"]) == (0, 0), killed
    docs = pile.records()
    present = {doc.document_id for doc in docs.values() if doc.presence is Presence.PRESENT}
    assert {doc.presence for doc in docs.values()} <= {Presence.PRESENT, Presence.DELETED, Presence.ERASED}, killed
    assert {name for name, doc in docs.items() if doc.document_id in present} >= pile.versions.keys(), killed
    assert all(docs[name].presence is Presence.ERASED for name in pile.deleted), killed
    rows = {store: pile.texts(store) for store in SLUGS}
    for store in SLUGS:
        assert rows[store].keys() == present, (store, killed)
    assert_partitions(docs, killed)
    assert_contents(pile, docs, rows, killed)


def assert_partitions(docs: dict[str, DocStatus], killed: list[str]) -> None:
    """Fail unless the partitions are just the documents that are to be some, and no run is left started."""
    with dg.DagsterInstance.get() as instance:
        partitions = set(instance.get_dynamic_partitions("documents"))
        started = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    wanted = {doc.document_id for doc in docs.values() if is_partition(doc.presence, doc.extraction.status)}
    assert (partitions, started) == (wanted, []), killed


def assert_contents(
    pile: ChangingPile, docs: dict[str, DocStatus], rows: dict[str, dict[str, set[str]]], killed: list[str]
) -> None:
    """Fail unless every artifact that is referred to is there, and files and corrections stand in every store."""
    artifacts = pile.artifacts.get_many([doc.artifact for doc in docs.values() if doc.artifact])
    for name, doc in docs.items():
        assert not doc.artifact or doc.artifact in artifacts, (name, killed)
    for name, version in pile.versions.items():
        doc = docs[name]
        assert (doc.extraction.status, doc.build.status) == (Status.COMPLETED, Status.COMPLETED), (name, killed)
        texts = texts_of(artifacts[doc.artifact])
        assert all(f"version {version}." in text for text in texts), (name, killed)
        assert name not in pile.corrected or pile.corrected[name] in texts, (name, killed)
        for store in SLUGS:
            held = rows[store][doc.document_id]
            assert all(f"version {version}." in text for text in held), (name, store, killed)
            assert held == texts or doc.links[store].state is LinkState.STALE, (name, store, killed)
