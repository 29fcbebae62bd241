"""Stores as a person meets them: listed, renamed, taken out, dropped."""

import pytest

from tests.end_to_end.project import Project

SOURCE = '[[sources]]\nname = "docs"\nuri = "docs"\n'
RUNS = "[runs]\nparser_workers = 1\n"


def config(*slugs: str, default_embedder: str = "hash", more: str = "") -> str:
    """An ingest.toml with these stores."""
    stores = "".join(f'[[stores]]\nslug = "{slug}"\n{more}' for slug in slugs)
    return f'default_embedder = "{default_embedder}"\nextractor = "none"\n{SOURCE}{stores}{RUNS}'


@pytest.fixture
def two(tmp_path) -> Project:
    """Three documents in two stores."""
    project = Project(tmp_path, config("a", "b"))
    for i in range(3):
        project.write(f"{i}.md", f"Text {i} about harbours.")
    project.json("run")
    return project


def listed(project: Project) -> dict[str, dict]:
    """What `ingest stores list` says, by slug."""
    return {store["slug"]: store for store in project.json("stores", "list")}


def test_another_default_embedder_changes_no_store(two: Project) -> None:
    """Stores that exist keep their embedder and are searched on; one that comes later has the new default."""
    before = listed(two)
    assert {store["embedder"] for store in before.values()} == {"hash"}
    two.configure(config("a", "b", "c", default_embedder="wordllama"))
    assert two.json("plan", "--apply")["n_stale"] == 0
    two.write("3.md", "Text 3 about harbours.")
    assert two.json("run")["n_succeeded"] == 1
    after = listed(two)
    assert {slug: store["embedder"] for slug, store in after.items()} == {"a": "hash", "b": "hash", "c": "wordllama"}
    assert after["a"]["created_at"] == before["a"]["created_at"]
    assert after["a"]["links"] == {"Ingested": 4}
    assert len(two.json("search", "harbours", "--store", "b", "-k", "10")) == 4


def test_which_store_is_searched(two: Project) -> None:
    """Without a name the default store is searched: the first, until another one is marked."""
    assert [store["slug"] for store in listed(two).values() if store["is_default"]] == ["a"]
    two.configure(config("a", "b").replace('slug = "b"\n', 'slug = "b"\nname = "Law"\ndefault = true\n'))
    assert two.json("run")["n_requested"] == 0
    assert [store["name"] for store in listed(two).values() if store["is_default"]] == ["Law"]
    assert "store b (Law), the default" in two.run("status").stdout
    two.json("stores", "drop", "b", "--yes")
    assert (len(two.json("search", "harbours")), len(two.json("search", "harbours", "--store", "a"))) == (0, 3)


def test_a_store_is_taken_out_and_dropped(two: Project) -> None:
    """Taken out it keeps data and record; dropped by name both go, and what the other store holds stays."""
    two.configure(config("a"))
    assert two.json("run")["n_requested"] == 0
    gone = listed(two)["b"]
    assert (gone["configured"], gone["is_default"], gone["embedder"]) == (False, False, "hash")
    assert "not in ingest.toml" in two.run("stores", "list").stdout
    data = two.root / ".ingest" / "stores" / "b.duckdb"
    assert data.exists()
    assert two.run("stores", "drop", "b").returncode == 2
    assert two.json("stores", "drop", "b", "--yes") == {"n_documents": 3, "n_busy": 0}
    assert (data.exists(), list(listed(two))) == (False, ["a"])
    assert len(two.json("search", "harbours")) == 3
    unknown = two.run("stores", "drop", "b", "--yes")
    assert (unknown.returncode, "Known: a" in unknown.stderr) == (2, True)


def test_a_store_is_put_back(two: Project) -> None:
    """A store that was taken out and put back holds what it held, and is built on without anything done twice."""
    two.configure(config("a"))
    two.write("0.md", "Another text about harbours.")
    two.json("run")
    two.configure(config("a", "b"))
    assert two.json("run")["n_succeeded"] == 1
    assert listed(two)["b"]["links"] == {"Ingested": 3}
    assert two.json("run")["n_requested"] == 0


def test_a_store_gets_a_new_slug(two: Project) -> None:
    """With the file it had it is taken over: nothing embedded or extracted again, and the old name can be dropped."""
    before = listed(two)["b"]["links"]
    two.configure(
        config("a", "c").replace('slug = "c"\n', 'slug = "c"\nconfig = { path = ".ingest/stores/b.duckdb" }\n')
    )
    two.json("run")
    assert listed(two)["c"]["links"] == before
    told = two.run("stores", "drop", "b", "--yes").stdout
    assert "Its file is left to store 'c'." in told
    assert list(listed(two)) == ["a", "c"]
    assert len(two.json("search", "harbours", "--store", "c")) == 3
    assert two.json("verify")["differences"] == []
