"""A source that holds the program's own data never ingests it."""

from tests.end_to_end.project import Project

CONFIG = """
data_dir = "data"
document_state_store = "sqlite:///kept/records.db"
artifact_store = "sqlite:///kept/made.db"
[[sources]]
name = "all"
uri = "."
exclude = []
[[stores]]
slug = "one"
[[stores]]
slug = "two"
config = { path = "two.duckdb" }
"""


def test_nothing_of_our_own_is_a_document(tmp_path):
    """Whatever a run leaves behind, wherever it is configured to be, the next listing finds no document in it."""
    project = Project(tmp_path, CONFIG)
    project.write("a.md", "The pump is overhauled every two years.")
    assert project.json("run")["n_succeeded"] == 1
    assert {"data", "kept", "two.duckdb"} <= {path.name for path in tmp_path.iterdir()}
    planned = project.json("plan")
    assert (planned["documents"], planned["n_unchanged"]) == ([], 1)
