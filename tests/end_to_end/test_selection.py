"""A setting changed, a store was added, a store was away: what was asked for is done, and nothing else."""

import asyncio
import json
import time

import pytest

from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import DocStatus, DocumentStoreLink, Lifecycle, LinkState, Status
from resources.file_lock import exclusive_lock
from resources.records.sqlite_backend import SqliteBackend
from tests.end_to_end.project import Project

N = 5
COUNTING = '''
import pathlib, time
from resources.extractor.none_extractor import NoneExtractor

class Counting(NoneExtractor):
    """Writes down what it is asked."""

    async def extract(self, document_id, chunks):
        time.sleep(float(pathlib.Path("pause").read_text()))
        with open("extracted", "a") as told:
            told.write(document_id + "\\n")
        return await super().extract(document_id, chunks)
'''


class Piles(Project):
    """A project whose extractor writes down each call."""

    def __init__(self, root) -> None:
        super().__init__(root)
        self.environment["PYTHONPATH"] = str(root)
        (root / "counting.py").write_text(COUNTING)
        (root / "pause").write_text("0")
        for i in range(N):
            self.write(f"{i}.md", f"# Title {i}\n\n" + f"Text number {i} about harbours. " * 10)

    def set_up(self, default="hash", more="", stores=("default", "archive")) -> None:
        """Write ingest.toml: the embedder of the store `default`, more settings, and which stores there are."""
        text = 'extractor = "counting:Counting"\ndefault_embedder = "hash"\n[[sources]]\nname = "docs"\nuri = "docs"\n'
        for slug in stores:
            text += f'[[stores]]\nslug = "{slug}"\nembedder = "{default if slug == "default" else "hash"}"\n'
            text += "[stores.config]\nlock_timeout = 0.2\n"
        self.configure(f"{text}[runs]\nparser_workers = 1\ngroup = 2\n{more}")

    def n_extracted(self) -> int:
        """How often the extractor was called."""
        told = self.root / "extracted"
        return len(told.read_text().splitlines()) if told.exists() else 0

    def stores(self) -> dict[str, dict[str, int]]:
        """Documents by store and state."""
        found: dict[str, dict[str, int]] = {}
        for link in (link for doc in self.records() for link in doc.links.values()):
            states = found.setdefault(link.store, {})
            states[link.state.value] = states.get(link.state.value, 0) + 1
        return found

    def links(self, slug: str) -> list[DocumentStoreLink]:
        """The links of every document to one store."""
        return [doc.links[slug] for doc in self.records()]

    def records(self) -> list[DocStatus]:
        """Every record, read beside the command line."""

        async def read() -> list[DocStatus]:
            backend = SqliteBackend(self.root / ".ingest" / "state.db")
            docs = [doc async for doc in RecordDocumentStateStore(backend).iter_statuses()]
            await backend.close()
            return docs

        return asyncio.run(read())


@pytest.fixture
def piles(tmp_path) -> Piles:
    """Documents that stand in two stores."""
    project = Piles(tmp_path)
    project.set_up()
    project.json("run")
    assert project.stores() == {"default": {"Ingested": N}, "archive": {"Ingested": N}}
    return project


def test_a_stores_embedder_changes(piles: Piles) -> None:
    """Nothing happens by itself; marked, explained, planned; asked for, the store begins anew, extracting nothing."""
    piles.set_up(default="wordllama")
    assert piles.json("run")["n_requested"] == 0
    assert piles.json("plan", "--apply")["stores"] == {"default": N}
    assert piles.json("plan", "--apply")["n_stale"] == 0
    assert piles.stores() == {"default": {"Stale": N}, "archive": {"Ingested": N}}
    assert piles.json("run")["n_requested"] == 0
    told = piles.json("why", "docs/0.md", code=1)
    [difference] = told["standings"][1]["differences"]
    assert (difference["part"], difference["old"], difference["new"].split()[0]) == ("embedder", "hash 1", "wordllama")
    assert told["standings"][2]["verdict"] == "current"
    planned = piles.json("plan", "--stale", "--store", "default")
    assert (len(planned["documents"]), planned["n_to_extract"], planned["n_chunks"]) == (N, 0, N)
    assert planned["begun_anew"] == ["default"]
    for refused in (piles.run("run", "--stale"), piles.run("run", "--store", "default", "--stale", "docs")):
        assert (refused.returncode, "`ingest run --store default --stale`" in refused.stderr) == (1, True)
    searched = piles.run("search", "harbours")
    assert (searched.returncode, "`ingest run --store default --stale`" in searched.stderr) == (1, True)
    assert piles.stores()["default"] == {"Stale": N}
    before, n = piles.links("archive"), piles.n_extracted()
    assert piles.json("run", "--store", "default", "--stale")["n_succeeded"] == N
    assert piles.stores() == {"default": {"Ingested": N}, "archive": {"Ingested": N}}
    assert (piles.links("archive"), piles.n_extracted()) == (before, n)
    found = piles.run("search", "harbours", "-k", "20", "--json")
    assert (len(json.loads(found.stdout)), found.stderr) == (N, "")
    assert piles.json("stores", "list")[0]["embedder"] == "wordllama"
    assert piles.json("run")["n_requested"] == 0


def test_killed_while_a_store_is_built_anew(piles: Piles) -> None:
    """What was asked for is owed: the next run, which nobody told, does the rest, with what had failed there."""
    piles.set_up(default="wordllama")
    piles.write("new.md", "A new text about harbours.")
    assert piles.json("run", code=1)["results"][0]["reason"] == "store_mismatch"
    n = piles.n_extracted()
    run = piles.start("run", "--store", "default", "--stale")
    while "Failed" in piles.stores()["default"]:  # until the store is emptied and all of it is owed
        assert run.poll() is None
        time.sleep(0.01)
    run.kill()
    run.communicate()
    assert piles.run("run").returncode == 0
    assert piles.stores() == {"default": {"Ingested": N + 1}, "archive": {"Ingested": N + 1}}
    assert piles.n_extracted() == n
    assert len(piles.json("search", "harbours", "-k", "20")) == N + 1


def test_a_store_is_dropped_and_built_again(piles: Piles) -> None:
    """Dropped, it is due nowhere; asked for, it is built from what was extracted."""
    assert piles.run("stores", "drop", "default").returncode == 2
    before, n = piles.links("archive"), piles.n_extracted()
    assert piles.json("stores", "drop", "default", "--yes") == {"n_documents": N, "n_busy": 0}
    assert piles.json("run")["n_requested"] == 0
    assert piles.json("run", "--store", "default", "--missing")["n_succeeded"] == N
    assert piles.stores() == {"default": {"Ingested": N}, "archive": {"Ingested": N}}
    assert (piles.links("archive"), piles.n_extracted()) == (before, n)


def test_a_store_that_failed_is_taken_out(piles: Piles) -> None:
    """A store that is configured no more fails no document: its links count no more once that is applied."""
    for i in range(N):
        piles.write(f"{i}.md", f"Other text {i} about harbours.")
    with exclusive_lock(piles.root / ".ingest" / "stores" / "archive.duckdb.lock", 20):
        piles.json("run", code=1)
    piles.set_up(stores=("default",))
    piles.json("plan", "--apply")
    piles.json("run")
    assert {doc.lifecycle for doc in piles.records()} == {Lifecycle.INGESTED}
    assert {doc.build.status for doc in piles.records()} == {Status.COMPLETED}
    assert piles.json("status")["stores"] == {"default": {"Ingested": N}}
    assert piles.json("plan", "--apply")["unconfigured"] == {}


def test_a_store_is_added(piles: Piles) -> None:
    """Nothing happens by itself; asked for, the store is built from what was extracted, and nothing is extracted."""
    piles.set_up(stores=("default", "archive", "later"))
    n = piles.n_extracted()
    assert piles.json("run")["n_requested"] == 0
    planned = piles.json("plan", "--store", "later", "--missing")
    assert (len(planned["documents"]), planned["n_to_extract"]) == (N, 0)
    assert piles.json("run", "--store", "later", "--missing", "--where", "source=elsewhere")["n_requested"] == 0
    before = piles.links("default")
    assert piles.json("run", "--store", "later", "--missing")["n_succeeded"] == N
    assert piles.stores() == {slug: {"Ingested": N} for slug in ("default", "archive", "later")}
    assert (piles.n_extracted(), piles.links("default")) == (n, before)
    assert piles.json("run", "--store", "later", "--missing")["n_requested"] == 0


def test_a_store_is_put_back(piles: Piles) -> None:
    """The next run, which nobody told, brings it to the truth: without what is gone, with what changed; no more."""
    piles.set_up(stores=("default",))
    piles.write("0.md", "Another text about windmills.")
    piles.write("new.md", "A new text about harbours.")
    (piles.docs / "1.md").unlink()
    piles.json("run")
    assert "It leaves it when the store is back" in piles.run("delete", "docs/2.md", "--yes").stderr
    piles.set_up()
    for command in (("status",), ("plan",), ("search", "harbours", "--store", "archive")):
        assert "Store 'archive' may hold something else" in piles.run(*command).stderr
    assert len(piles.json("search", "harbours", "--store", "archive", "-k", "20")) == N
    n = piles.n_extracted()
    told = piles.run("run")
    assert "To be removed from store 'archive', for they are gone: 2 documents." in told.stderr
    assert piles.n_extracted() == n
    found = piles.json("search", "windmills", "--store", "archive", "-k", "20")
    assert found[0]["filename"] == "0.md"
    assert {hit["filename"] for hit in found} == {"0.md", "3.md", "4.md"}
    assert piles.run("status").stderr == ""
    assert piles.json("run")["n_requested"] == 0
    assert piles.json("verify")["differences"] == []
    assert piles.json("run", "--store", "archive", "--missing")["n_succeeded"] == 1


def test_a_store_is_another_one(piles: Piles) -> None:
    """Another index under the old slug is not said to hold what it lacks, and is filled when somebody asks."""
    text = (piles.root / "ingest.toml").read_text()
    archive = 'slug = "archive"\nembedder = "hash"\n[stores.config]\n'
    piles.configure(text.replace(archive, f'{archive}path = "archive.duckdb"\n'))
    assert "Store 'archive' may hold something else" in piles.run("status").stderr
    n, told = piles.n_extracted(), piles.run("run")
    assert f"Not in store 'archive', though they were built into it: {N} documents." in told.stderr
    assert piles.stores() == {"default": {"Ingested": N}}
    assert piles.json("status")["missing"] == {"archive": N}
    assert f"Not in store 'archive': {N} documents." in piles.run("status").stdout
    assert piles.json("run", "--store", "archive", "--missing")["n_succeeded"] == N
    assert piles.json("status")["missing"] == {}
    assert piles.n_extracted() == n
    assert piles.stores() == {"default": {"Ingested": N}, "archive": {"Ingested": N}}
    piles.configure(text)
    assert piles.run("run").returncode == 0
    assert piles.json("verify")["differences"] == []


def test_a_store_goes_away_in_mid_run(piles: Piles) -> None:
    """Its links fail and the other store's do not; asked for, the failures are mended, and nothing else is touched."""
    for i in range(N):
        piles.write(f"{i}.md", f"# Other title {i}\n\nOther text {i}.")
    (piles.root / "pause").write_text("0.2")
    n = piles.n_extracted()
    run = piles.start("run", "--json")
    while piles.n_extracted() < n + 3:
        time.sleep(0.02)
    with exclusive_lock(piles.root / ".ingest" / "stores" / "archive.duckdb.lock", 20):
        run.communicate(timeout=60)
    assert run.returncode == 1
    stores = piles.stores()
    assert stores["default"] == {"Ingested": N}
    n_failed = stores["archive"]["Failed"]
    assert n_failed
    before, n = piles.links("default"), piles.n_extracted()
    kept = [link for link in piles.links("archive") if link.state is LinkState.INGESTED]
    assert len(kept) == N - n_failed
    mended = piles.json("run", "--store", "archive", "--failed")
    assert (mended["n_requested"], mended["n_succeeded"]) == (n_failed, n_failed)
    assert piles.stores() == {"default": {"Ingested": N}, "archive": {"Ingested": N}}
    assert (piles.links("default"), piles.n_extracted()) == (before, n)
    assert all(link in piles.links("archive") for link in kept)


def test_chunking_changes(piles: Piles) -> None:
    """Stale everywhere, rebuilt where asked; the other store stays as it was, stale, until it is asked for too."""
    piles.set_up(more="[chunking]\nsize = 100\n")
    piles.json("plan", "--apply")
    assert piles.stores() == {"default": {"Stale": N}, "archive": {"Stale": N}}
    piles.set_up()
    assert piles.json("plan", "--apply")["n_current"] == N
    assert piles.stores() == {"default": {"Ingested": N}, "archive": {"Ingested": N}}
    piles.set_up(more="[chunking]\nsize = 100\n")
    piles.json("plan", "--apply")
    n, before = piles.n_extracted(), piles.links("archive")
    assert piles.json("plan", "--stale")["n_to_extract"] == N
    assert piles.json("run", "--store", "default", "--stale")["n_succeeded"] == N
    assert piles.n_extracted() == n + N
    assert piles.stores() == {"default": {"Ingested": N}, "archive": {"Stale": N}}
    assert piles.links("archive") == before
    assert piles.json("run")["n_requested"] == 0
    told = piles.json("why", "docs/0.md", code=1)["standings"]
    assert [standing["verdict"] for standing in told] == ["current", "current", "stale"]
    assert piles.json("run", "--stale")["n_succeeded"] == N
    assert piles.n_extracted() == n + N
    assert piles.stores() == {"default": {"Ingested": N}, "archive": {"Ingested": N}}


def test_killed_while_it_was_asked_for(piles: Piles) -> None:
    """What was in the works is finished by the next run, the rest when it is asked for again; nothing is lost."""
    piles.set_up(more="[chunking]\nsize = 100\n")
    (piles.root / "pause").write_text("0.3")
    n = piles.n_extracted()
    run = piles.start("run", "--store", "default", "--stale")
    while piles.n_extracted() < n + 3:
        time.sleep(0.02)
    run.kill()
    run.communicate()
    (piles.root / "pause").write_text("0")
    piles.json("run")
    assert all(doc.claim is None and doc.build.status is Status.COMPLETED for doc in piles.records())
    piles.json("run", "--store", "default", "--stale")
    assert piles.stores()["default"] == {"Ingested": N}
    assert piles.json("plan", "--store", "default", "--stale")["documents"] == []


def test_chosen_by_facets(piles: Piles) -> None:
    """Facets choose among failures; what nobody knows is refused with what is known."""
    piles.write("empty.md", "")
    piles.write("torn.pdf", "%PDF-1.7 torn")
    piles.json("run", code=1)
    done = piles.json("run", "--where", "reason=empty_file", code=1)
    assert [result["filename"] for result in done["results"]] == ["empty.md"]
    done = piles.json("run", "--failed", "--where", "source=docs status=failed", code=1)
    assert {result["filename"] for result in done["results"]} == {"empty.md", "torn.pdf"}
    assert len(piles.json("plan", "--where", "state=ingested")["documents"]) == N


def test_asked_wrongly(tmp_path) -> None:
    """A choice that makes no sense is wrong usage, and is refused with what would make sense."""
    project = Piles(tmp_path)
    project.set_up()
    for arguments, told in (
        (("run", "--where", "colour=red"), "Known: source=…, reason=…, status=…, state=…"),
        (("plan", "--store", "nowhere", "--stale"), "Known: archive, default"),
        (("why", "docs/nothing.md"), "No document 'docs/nothing.md' is known"),
    ):
        done = project.run(*arguments)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr
