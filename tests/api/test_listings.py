"""Sources listed at a request, and documents brought back: by a process of its own, with what came of it told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.served import Served
from tests.api.test_jobs import CONFIG, _ended
from tests.end_to_end.project import Project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A folder with two documents, of which nobody knows yet."""
    project = Project(tmp_path_factory.mktemp("listings"), CONFIG)
    for name in ("a", "b"):
        project.write(f"{name}.md", f"The document {name} has words.")
    return project


@pytest.fixture(scope="module")
def served(project: Project) -> Iterator[Served]:
    """That, served."""
    with Served(project) as server:
        yield server


def _listed(served: Served, **wanted: bool) -> dict[str, object]:
    answer = served.client.post("/api/listings", json=wanted)
    assert answer.status_code == 202
    return _ended(served, answer.json()["job"]["jobId"])


def _documents(served: Served, **filters: str) -> dict[str, dict[str, object]]:
    found = served.client.get("/api/documents", params=filters).json()["documents"]
    return {doc["name"]: doc for doc in found}


def test_from_nothing_to_a_restored_document(project: Project, served: Served) -> None:
    """Found, ingested, found changed and gone, not believed, deleted, brought back: each job says what it did."""
    first, second = (served.client.post("/api/listings").json()["job"]["jobId"] for _ in range(2))
    assert first == second, "two listings at once"
    job = _ended(served, first)
    assert (job["status"], job["errand"], job["nRequested"]) == ("succeeded", "listing", 0)
    assert (job["listed"]["nNew"], job["listed"]["doubts"]) == (2, [])
    assert {doc["extraction"]["status"] for doc in _documents(served).values()} == {"PENDING"}

    job = _listed(served, ingest=True)
    assert (job["status"], job["nSucceeded"], job["listed"]["nUnchanged"]) == ("succeeded", 2, 2)

    project.write("a.md", "The document a has other words.")
    (project.docs / "b.md").unlink()
    job = _listed(served)
    assert (job["listed"]["nNew"], job["listed"]["nChanged"], job["listed"]["nVanished"]) == (0, 1, 1)
    assert _listed(served, ingest=True)["nSucceeded"] == 2
    assert set(_documents(served)) == {"a.md"}

    project.docs.rename(project.root / "elsewhere")
    job = _listed(served)
    assert job["status"] == "failed"
    [doubt] = job["listed"]["doubts"]
    assert "'docs' could not be listed" in doubt
    assert str(project.root) not in doubt
    (project.root / "elsewhere").rename(project.docs)
    assert set(_documents(served)) == {"a.md"}

    document_id = _documents(served)["a.md"]["documentId"]
    assert served.client.post(f"/api/documents/{document_id}/restore").status_code == 409
    _ended(served, served.client.delete(f"/api/documents/{document_id}").json()["job"]["jobId"])
    assert not _documents(served)
    assert _listed(served)["listed"]["nNew"] == 0, "no listing brings it back"
    deleted = _documents(served, deleted="true")["a.md"]
    headers = {"If-Match": deleted["version"]}
    answer = served.client.post(f"/api/documents/{document_id}/restore", headers=headers)
    assert answer.status_code == 202
    job = _ended(served, answer.json()["job"]["jobId"])
    assert (job["status"], job["errand"], job["nSucceeded"]) == ("succeeded", "restoring", 1)
    assert _documents(served)["a.md"]["lifecycle"] == "Ingested"
    assert not _documents(served, deleted="true")
    assert served.client.post(f"/api/documents/{document_id}/restore", headers=headers).status_code == 412
    assert project.run("verify").returncode == 0, "its partition is there again"


def test_a_listing_that_lost_most_is_not_believed(tmp_path: Path) -> None:
    """Nothing is taken to be gone if too much is; the job has failed in part, and says what to do if it is true."""
    project = Project(tmp_path, CONFIG)
    for number in range(30):
        project.write(f"{number}.md", f"Document {number}.")
    with Served(project) as served:
        assert _listed(served)["listed"]["nNew"] == 30
        for path in project.docs.iterdir():
            if path.name != "0.md":
                path.unlink()
        job = _listed(served)
    assert job["status"] == "partial"
    assert job["listed"]["nVanished"] == 0
    assert "--accept-vanished" in job["listed"]["doubts"][0]
