"""A project whose documents and artifacts are in a bucket, driven by the command line."""

import pytest

from tests.document_source.s3_places import ClosingProxy, is_listing
from tests.end_to_end.project import Project
from tests.parsing.makers import zipped
from tests.servers.clients import s3_client
from tests.servers.faults import s3_error

CONFIG = """
default_embedder = "hash"
artifact_store = "s3://{bucket}/kept?endpoint_url={url}"

[[sources]]
name = "papers"
uri = "s3://{bucket}/papers?endpoint_url={url}"
"""


@pytest.fixture
def client(moto_url):
    """A client around the project."""
    return s3_client(moto_url)


@pytest.fixture
def proxy(moto_url):
    """What stands between the project and its bucket."""
    with ClosingProxy(moto_url) as proxy:
        yield proxy


@pytest.fixture
def project(tmp_path, client, proxy, bucket_name):
    """A project over a bucket with three documents."""
    client.create_bucket(Bucket=bucket_name)
    for key in ("one.md", "sub/two words.md", "sub/three%2F.md"):
        client.put_object(Bucket=bucket_name, Key=f"papers/{key}", Body=f"# {key}\n\nThe text of {key}.".encode())
    return Project(tmp_path, CONFIG.format(bucket=bucket_name, url=proxy.url))


def test_whole_way(project, client, bucket_name):
    """Documents of a bucket are listed, read, kept, built and found; then changed, unchanged and removed ones."""
    assert project.json("run")["n_succeeded"] == 3
    kept = client.list_objects_v2(Bucket=bucket_name, Prefix="kept/artifacts/")["KeyCount"]
    assert kept == 3
    assert not (project.root / ".ingest" / "artifacts").exists()
    assert project.json("run")["n_unchanged"] == 3
    client.put_object(Bucket=bucket_name, Key="papers/one.md", Body=b"# One\n\nOther words.")
    client.delete_object(Bucket=bucket_name, Key="papers/sub/two words.md")
    changed = project.json("run")
    assert (changed["n_requested"], changed["n_unchanged"]) == (2, 1)
    assert project.json("status")["documents"] == 2


def test_members_of_an_archive(project, client, bucket_name):
    """What lies in an archive of a bucket is found, changes by itself, and is gone with it; neighbours cost nothing."""
    client.put_object(
        Bucket=bucket_name, Key="papers/a b.zip", Body=zipped({"wind.md": "Wind.", "tide.md": "Low tide."})
    )
    assert (found := project.json("run"))["n_succeeded"] == 5
    assert found["n_skipped"] == 1
    shown = project.json("show", f"s3://{bucket_name}/papers/a b.zip!/tide.md")
    assert (shown["source_uri"], shown["parent"]) == ("papers:a%20b.zip!/tide.md", "papers:a%20b.zip")
    client.put_object(
        Bucket=bucket_name, Key="papers/a b.zip", Body=zipped({"wind.md": "Wind.", "tide.md": "High tide."})
    )
    changed = project.json("run")
    assert (changed["n_requested"], changed["n_unchanged"]) == (2, 4)  # the archive and the note that differs
    hit = project.json("search", "High tide.", "-k", "1")[0]
    assert (hit["text"], hit["document_id"]) == ("High tide.", shown["document_id"])
    client.delete_object(Bucket=bucket_name, Key="papers/a b.zip")
    project.json("run")
    assert project.json("status")["documents"] == 3
    assert "zip" not in str(project.json("search", "tide", "-k", "10"))


def test_documents_are_named_as_other_tools_name_them(project, bucket_name):
    """`s3://bucket/key` names a part to run or a document to show; nothing in it is decoded."""
    start = f"s3://{bucket_name}/papers"
    assert project.json("run", f"{start}/sub/")["n_succeeded"] == 2
    assert project.json("show", f"{start}/sub/two words.md")["source_uri"] == "papers:sub/two%20words.md"
    assert project.json("show", f"{start}/sub/three%2F.md")["source_uri"] == "papers:sub/three%252F.md"
    assert project.json("show", "sub/two words.md")["source"] == "papers"
    assert project.json("plan", start)["documents"][0]["source_uri"] == "papers:one.md"
    assert project.json("run", start)["n_succeeded"] == 1


def test_bucket_that_is_not_declared(project):
    """Another bucket becomes no source by being named; the error says how it becomes one."""
    done = project.run("run", "s3://another/papers")
    assert done.returncode == 2
    assert "s3://another/papers lies in no source" in done.stderr
    assert "[[sources]]" in done.stderr


def test_part_that_is_not_there(project, bucket_name):
    """A prefix with nothing below it is told, and nothing is concluded from it."""
    project.json("run")
    done = project.run("run", f"s3://{bucket_name}/papers/gone")
    assert done.returncode == 1
    assert "nothing is at 'gone'" in done.stderr
    assert project.json("status")["documents"] == 3


def test_failing_listing_removes_nothing(project, proxy):
    """While the bucket cannot be listed every document stays, and the run says so."""
    project.json("run")
    proxy.inject(s3_error(403, "AccessDenied"), is_listing, 1000)
    done = project.run("run")
    assert done.returncode == 1
    assert "Source 'papers'" in done.stderr
    assert "Nothing is taken to have vanished" in done.stderr
    assert project.json("status")["documents"] == 3


def test_why_a_run_ended_early_is_told(project, proxy):
    """A permission that is missing in mid-run is named by its action, whatever Dagster wraps around the error."""
    proxy.inject(s3_error(403, "AccessDenied"), when=lambda request: "/kept/artifacts/" in request.path, times=100)
    done = project.run("run")
    assert done.returncode == 1
    assert "ended early: Artifact store s3://" in done.stderr
    assert "PutObject is not permitted" in done.stderr
    assert "dagster" not in done.stderr
