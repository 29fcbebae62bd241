"""`ingest verify`: what was damaged is found and mended, without extracting anything."""

import os
import random
import sqlite3

import dagster as dg
import duckdb
import pytest

from tests.end_to_end.corruption import EXTRACTOR, damage_records, damage_rows
from tests.end_to_end.project import Project
from tests.end_to_end.two_stores import KINDS, TwoStores
from tests.store.raw_rows import Table

CONFIG = """
default_embedder = "hash"
extractor = "counted:Counted"
[[sources]]
name = "docs"
uri = "docs"
[chunking]
size = 60
"""


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest) -> TwoStores:
    """Two empty stores of each kind."""
    return request.getfixturevalue(f"{request.param}_stores")


def ingested(project: Project, stores: TwoStores, n: int) -> Project:
    """The project with n documents in two stores."""
    (project.root / "counted.py").write_text(EXTRACTOR)
    project.environment["PYTHONPATH"] = str(project.root)
    project.configure(CONFIG + stores.tables)
    for i in range(n):
        text = "\n\n".join(f"Paragraph {j} of document {i} says that {i * j} is a number." for j in range(1 + i % 5))
        project.write(f"{i:03}.md", f"# Document {i}\n\n{text}")
    project.json("run")
    return project


def calls(project: Project) -> int:
    """How often the extractor was called."""
    return len((project.root / "calls").read_text().splitlines())


def named(found: dict) -> set[str]:
    """The documents that differ."""
    return {difference["document_id"] for difference in found["differences"]}


def test_random_damage_is_found_and_mended(project: Project, stores: TwoStores) -> None:
    """1% of rows, vectors, records and links damaged at random: all are named, all mended, nothing is extracted."""
    ingested(project, stores, 100)
    assert project.json("verify")["n_differences"] == 0
    before = calls(project)
    for seed in range(int(os.environ.get("VERIFY_SEEDS", "1"))):
        rng = random.Random(seed)
        touched = damage_records(project, rng)
        for store in ("a", "b"):
            touched |= damage_rows(stores.rows_of(project, store), rng)
        found = project.json("verify", code=1)
        assert touched <= named(found), seed
        mended = project.json("verify", "--repair")
        assert (mended["n_remaining"], mended["problems"]) == (0, {}), seed
        assert project.json("verify")["n_differences"] == 0, seed
    done = project.json("run")
    assert (done["n_requested"], calls(project)) == (0, before)


def test_what_no_source_has_is_taken_out(project: Project, duckdb_stores: TwoStores) -> None:
    """A damaged record of a document that is gone from its source: out of the stores, no partition, no record."""
    ingested(project, duckdb_stores, 3)
    [gone] = [d for d in documents(project) if d.startswith("001")]
    (project.docs / "001.md").unlink()
    change_record(project, gone, b"junk")
    mended = project.json("verify", "--repair")
    assert (named(mended), mended["n_remaining"]) == ({gone}, 0)
    assert gone not in documents(project)
    for store in ("a", "b"):
        assert gone not in {row.document_id for row in duckdb_stores.rows_of(project, store).all(Table.CHUNKS)}


def test_what_cannot_be_listed_is_left(project: Project, duckdb_stores: TwoStores) -> None:
    """While a source cannot be listed, nothing is taken out of a store."""
    ingested(project, duckdb_stores, 3)
    [lost] = [d for d in documents(project) if d.startswith("001")]
    change_record(project, lost, None)
    project.docs.rename(project.root / "elsewhere")
    left = project.json("verify", "--repair", code=1)
    assert named(left) == {lost}
    assert "could be listed" in left["problems"][lost]
    (project.root / "elsewhere").rename(project.docs)
    assert project.json("verify", "--repair")["n_remaining"] == 0
    assert calls(project) == 3


def test_a_lost_artifact_is_extracted_again_only_if_told(project: Project, duckdb_stores: TwoStores) -> None:
    """An artifact that is lost costs an extraction, so it is only named until somebody says --re-extract."""
    ingested(project, duckdb_stores, 3)
    with sqlite3.connect(project.root / ".ingest/artifacts/artifacts.db") as artifacts:
        artifacts.execute("DELETE FROM artifacts WHERE document_id LIKE '001%'")
    rows = duckdb_stores.rows_of(project, "a")
    rows.change(next(row for row in rows.all(Table.CHUNKS) if row.document_id.startswith("001")), rows.vector_field)
    left = project.json("verify", "--repair", code=1)
    assert [(d["where"], d["what"], d["repaired"]) for d in left["differences"]] == [
        ("a", "rows damaged", False),
        ("artifact", "artifact lost", False),
    ]
    assert calls(project) == 3
    assert project.json("verify", "--repair", "--re-extract")["n_remaining"] == 0
    assert calls(project) == 4


def test_only_what_is_named_is_looked_at(project: Project, duckdb_stores: TwoStores) -> None:
    """A document or a store that is named is compared, and nothing else; unknown ones are wrong usage."""
    ingested(project, duckdb_stores, 3)
    rows = duckdb_stores.rows_of(project, "a")
    rows.change(rows.all(Table.CHUNKS)[0], "text")
    [damaged] = named(project.json("verify", code=1))
    assert project.json("verify", "--store", "b")["n_differences"] == 0
    assert named(project.json("verify", "--store", "a", damaged, code=1)) == {damaged}
    other = next(d for d in documents(project) if d != damaged)
    assert project.json("verify", other)["n_differences"] == 0
    assert project.run("verify", "nobody.md").returncode == 2
    assert project.run("verify", "--store", "c").returncode == 2
    assert project.run("verify", "--re-extract").returncode == 2
    shown = project.run("verify")
    assert (shown.returncode, "rows damaged" in shown.stdout) == (1, True)


def test_dagster_is_told_again(project: Project, duckdb_stores: TwoStores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions that are missing or nobody's, and materializations that were wiped, are mended without work."""
    ingested(project, duckdb_stores, 3)
    monkeypatch.setenv("DAGSTER_HOME", str(project.root / ".ingest/dagster"))
    first, second, third = sorted(documents(project))
    with dg.DagsterInstance.get() as instance:
        instance.delete_dynamic_partition("documents", first)
        instance.add_dynamic_partitions("documents", ["nobody"])
        instance.wipe_assets([dg.AssetKey(["built", "a"])])
    found = project.json("verify", code=1)
    assert {(d["document_id"], d["what"]) for d in found["differences"]} == {
        (first, "no partition"),
        ("nobody", "unknown document"),
        *((key, "not reported") for key in (first, second, third)),
    }
    assert project.json("verify", "--repair")["n_remaining"] == 0
    assert calls(project) == 3


def documents(project: Project) -> list[str]:
    """The ids of all documents with a record."""
    with sqlite3.connect(project.root / ".ingest/state.db") as state:
        return [key for (key,) in state.execute("SELECT key FROM records WHERE kind = 'document'")]


def change_record(project: Project, document_id: str, value: bytes | None) -> None:
    """Put something else in the place of a record's value; None: take it away."""
    with sqlite3.connect(project.root / ".ingest/state.db") as state:
        if value is None:
            state.execute("DELETE FROM records WHERE kind = 'document' AND key = ?", (document_id,))
        else:
            state.execute("UPDATE records SET value = ? WHERE kind = 'document' AND key = ?", (value, document_id))


def test_what_a_person_removed_is_not_brought_back(project: Project, duckdb_stores: TwoStores) -> None:
    """The damaged record of a document somebody had erased is named and left: its source still has the document."""
    ingested(project, duckdb_stores, 3)
    [erased] = [d for d in documents(project) if d.startswith("001")]
    assert project.run("delete", erased, "--yes").returncode == 0
    found = project.json("verify")
    assert (found["n_differences"], found["n_documents"]) == (0, 2)
    change_record(project, erased, b"junk")
    left = project.json("verify", "--repair", code=1)
    assert (named(left), left["n_remaining"]) == ({erased}, 1)
    assert "erased" in left["problems"][erased]
    assert erased not in {row.document_id for row in duckdb_stores.rows_of(project, "a").all(Table.DOCUMENTS)}


def test_a_store_that_cannot_be_read_is_named(project: Project, duckdb_stores: TwoStores) -> None:
    """An empty file in a store's place is that store's fault: the others are compared; nothing is mended meanwhile."""
    ingested(project, duckdb_stores, 2)
    (project.root / ".ingest/stores/a.duckdb").write_bytes(b"")
    damaged = min(documents(project))
    with duckdb.connect(str(project.root / ".ingest/stores/b.duckdb")) as store:
        store.execute("DELETE FROM chunks WHERE document_id = ?", [damaged])
    for repair in ((), ("--repair",)):
        found = project.json("verify", *repair, code=1)
        assert list(found["unreadable_stores"]) == ["a"]
        assert {(d["document_id"], d["where"], d["repaired"]) for d in found["differences"]} == {(damaged, "b", False)}
    assert project.json("verify", damaged, code=1)["n_documents"] == 1


def test_a_stray_of_a_document_that_was_removed(project: Project, duckdb_stores: TwoStores) -> None:
    """Rows of no record go also from a store that remembers an earlier removal of them, under a larger token."""
    ingested(project, duckdb_stores, 1)
    with duckdb.connect(str(project.root / ".ingest/stores/a.duckdb")) as store:
        store.execute("INSERT INTO removed_documents VALUES ('stray', 7)")
        store.execute("INSERT INTO entries SELECT * REPLACE ('stray' AS document_id) FROM entries LIMIT 1")
    mended = project.json("verify", "--repair")
    assert (named(mended), mended["n_remaining"]) == ({"stray"}, 0)
