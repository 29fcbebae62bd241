"""What people change over HTTP: the text of a chunk, or that a document is there at all."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.api.served import PATIENCE, Served
from tests.end_to_end.project import Project
from tests.parsing.makers import zipped

CONFIG = 'default_embedder = "hash"\n[[sources]]\nname = "docs"\nuri = "docs"\n'


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """One ingested document, served."""
    project = Project(tmp_path, CONFIG)
    project.write("a.md", "The pump is overhauled every 400 hours.")
    assert project.run("run").returncode == 0
    with Served(project) as server:
        yield server


def _document(server: Served) -> dict[str, str]:
    [doc] = server.client.get("/api/documents").json()["documents"]
    return dict(doc)


def test_two_people_correct_the_same_chunk(server: Served) -> None:
    """Of two corrections of one chunk that come at once, one is made; the other is 412 and sees it: nothing is lost."""
    doc = _document(server)
    path = f"/api/documents/{doc['documentId']}/chunks"
    [chunk] = server.client.get(path).json()["chunks"]
    texts = ["The pump is overhauled every 500 hours.", "The pump is overhauled every 600 hours."]

    def correct(text: str) -> tuple[int, dict[str, object]]:
        answer = server.client.put(
            f"{path}/{chunk['chunkId']}", json={"text": text}, headers={"If-Match": doc["version"]}
        )
        return answer.status_code, answer.json()

    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(correct, texts), key=lambda answer: answer[0])
    assert [status for status, _ in answers] == [200, 412]
    made, refused = answers[0][1], answers[1][1]
    assert refused["chunk"] == made
    assert refused["version"] == _document(server)["version"]
    [now] = server.client.get(path).json()["chunks"]
    assert now == made
    assert now["correction"]["originalText"] == chunk["text"]
    assert now["correction"]["by"] == "owner"
    assert _document(server)["lifecycle"] == "Stale"


def test_a_correction_without_an_etag_knows_its_chunk(server: Served) -> None:
    """A chunk's id is its text's, so a correction of a text that is no longer there is 412 without an ETag too."""
    document_id = _document(server)["documentId"]
    path = f"/api/documents/{document_id}/chunks"
    [chunk] = server.client.get(path).json()["chunks"]
    first = server.client.put(f"{path}/{chunk['chunkId']}", json={"text": "Every 500 hours.", "note": "manual"})
    assert first.status_code == 200
    second = server.client.put(f"{path}/{chunk['chunkId']}", json={"text": "Every 600 hours."})
    assert second.status_code == 412
    assert second.json()["chunk"] == first.json()
    assert server.client.put(f"{path}/{'0' * 32}", json={"text": "a"}).status_code == 404
    assert server.client.put(f"{path}/{first.json()['chunkId']}", json={"text": "  "}).status_code == 422


def _wait(server: Served, job: str) -> None:
    until = time.monotonic() + PATIENCE
    while not server.client.get(job).json()["completedAt"] and time.monotonic() < until:
        time.sleep(0.1)


def test_a_container_is_deleted_with_all_that_lies_in_it(tmp_path: Path) -> None:
    """Deleting an archive takes its members out of every store, however deep, and keeps out what is put in later."""
    project = Project(tmp_path, CONFIG + '[[stores]]\nslug = "default"\n[[stores]]\nslug = "second"\n')
    project.write("other.md", "The crane stands.")
    archive = project.docs / "a.zip"
    archive.write_bytes(zipped({"pump.md": "The pump leaks.", "inner.zip": zipped({"crane.md": "The crane fell."})}))
    assert project.run("run").returncode == 0
    with Served(project) as server:
        ids = {doc["name"]: doc["documentId"] for doc in server.client.get("/api/documents").json()["documents"]}
        assert set(ids) == {"other.md", "a.zip", "a.zip!/pump.md", "a.zip!/inner.zip", "a.zip!/inner.zip!/crane.md"}
        answer = server.client.delete(f"/api/documents/{ids['a.zip']}")
        assert answer.status_code == 202
        _wait(server, answer.headers["location"])
        archive.write_bytes(zipped({"pump.md": "The pump leaks again.", "new.md": "The valve leaks, too."}))
        assert project.json("run")["n_requested"] == 0
        assert [doc["name"] for doc in server.client.get("/api/documents").json()["documents"]] == ["other.md"]
        for store in ("default", "second"):
            hits = server.client.post("/api/search", json={"query": "pump", "store": store, "k": 10}).json()["hits"]
            assert {hit["name"] for hit in hits} == {"other.md"}


def test_a_deleted_document_is_gone(server: Served) -> None:
    """Deleting a document takes it out of lists, stores and searches, though its file is still there."""
    doc = _document(server)
    path = f"/api/documents/{doc['documentId']}"
    assert server.client.delete(path, headers={"If-Match": '"1.old"'}).status_code == 412
    answer = server.client.delete(path, headers={"If-Match": doc["version"]})
    assert answer.status_code == 202
    _wait(server, answer.headers["location"])
    assert server.client.get("/api/documents").json()["documents"] == []
    assert server.client.post("/api/search", json={"query": "pump"}).json()["hits"] == []
    assert server.client.get(path).json()["presence"] != "present"
    again = server.client.delete(path)
    assert (again.status_code, again.json()["job"]) == (200, None)
