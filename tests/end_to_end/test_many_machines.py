"""A project whose state, artifacts, documents and Dagster history lie on servers, worked on by several at once."""

import collections
import json
import signal
import time
from pathlib import Path

import dagster as dg
import pytest

from tests.end_to_end.project import Project
from tests.servers.clients import patient, s3_client

pytestmark = pytest.mark.servers

_N = 300
_DAGSTER_YAML = "storage:\n  postgres:\n    postgres_url: {url}\ntelemetry:\n  enabled: false\n"


@pytest.fixture
def bucket(seaweedfs, bucket_name) -> str:
    """A bucket with documents."""
    client = s3_client(seaweedfs.url)
    client.create_bucket(Bucket=bucket_name)
    for number in range(_N):
        words = "\n\n".join(f"Paragraph {i} of document {number} says something new." for i in range(20))
        body = f"# Document {number}\n\n{words}".encode()
        client.put_object(Bucket=bucket_name, Key=f"documents/{number:03d}.md", Body=body)
    return bucket_name


@pytest.fixture(params=["dynamodb", "s3"])
def project(request, tmp_path, seaweedfs, bucket, postgres_url, monkeypatch) -> Project:
    """A project that keeps nothing on this machine but its store."""
    s3 = seaweedfs.url
    if request.param == "dynamodb":
        state = patient(f"dynamodb://state?endpoint_url={request.getfixturevalue('dynamodb_local')}")
    else:
        state = patient(f"s3://{bucket}/state?endpoint_url={s3}")
    project = Project(
        tmp_path,
        f"""
        document_state_store = "{state}"
        artifact_store = "s3://{bucket}/artifacts?endpoint_url={s3}"
        default_embedder = "hash"
        [[sources]]
        name = "docs"
        uri = "s3://{bucket}/documents?endpoint_url={s3}"
        [runs]
        group = 20
        documents_from_command_line = 100
        lease_seconds = 10
        """,
    )
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text(_DAGSTER_YAML.format(url=postgres_url))
    project.environment["DAGSTER_HOME"] = str(home)
    with _dagster(home, monkeypatch) as instance:  # other tests of the session have used the database
        instance.event_log_storage.wipe()
        instance.run_storage.wipe()
    return project


def _dagster(home: Path, monkeypatch) -> dg.DagsterInstance:
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return dg.DagsterInstance.get()


def _materializations(home: Path, asset_key: dg.AssetKey, monkeypatch) -> collections.Counter[str]:
    with _dagster(home, monkeypatch) as instance:
        records = instance.fetch_materializations(asset_key, limit=10 * _N).records
    return collections.Counter(record.partition_key for record in records)


def test_three_workers_share_the_work(project, monkeypatch):
    """Three runs at once, one of them killed and resumed: each document is done once, and told once."""
    assert project.run("state", "create").returncode == 0
    workers = [project.start("run", "--json") for _ in range(3)]
    time.sleep(12)
    workers[0].kill()
    said = [worker.communicate(timeout=300) for worker in workers]
    assert [worker.returncode for worker in workers] == [-signal.SIGKILL, 0, 0], said
    project.json("run", "--mode", "resume")
    assert project.json("status")["build"] == {"COMPLETED": _N}
    done = [json.loads(out) for out, _ in said[1:]]
    worked_on = collections.Counter(
        result["document_id"] for each in done for result in each["results"] if result["status"] == "succeeded"
    )
    assert set(worked_on.values()) <= {1}
    for asset_key in (dg.AssetKey("extracted"), dg.AssetKey(["built", "default"])):
        told = _materializations(project.root / "dagster", asset_key, monkeypatch)
        assert (len(told), set(told.values())) == (_N, {1})
    again = project.json("run")
    assert (again["n_requested"], again["n_unchanged"]) == (0, _N)
    [hit] = project.json("search", "Paragraph 7 of document 123", "-k", "1")
    assert hit["source_uri"].startswith("docs:")
