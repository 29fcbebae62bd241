"""Sources of which one lies in the other: their documents are there twice, and that is said."""

from tests.end_to_end.project import Project


def test_overlapping_sources_are_told(project: Project) -> None:
    """`plan` and `run` name both, once each and with what to do, also where one became a source by being named."""
    project.write("sub/a.md", "The pump is overhauled every two years.")
    assert project.json("run", "docs")["overlaps"] == []
    project.configure('[[sources]]\nname = "inner"\nuri = "docs/sub"\n[[sources]]\nname = "docs"\nuri = "docs"\n')
    for command in ("plan", "run"):
        done = project.run(command)
        [told] = [line for line in done.stderr.splitlines() if "overlap" in line]
        assert "'docs'" in told
        assert "'inner'" in told
        assert "Put 'sub' into the `exclude` of 'docs'" in told
        assert project.json(command)["overlaps"] == [{"outer": "docs", "inner": "inner", "key": "sub"}]
    project.configure(
        '[[sources]]\nname = "inner"\nuri = "docs/sub"\n[[sources]]\nname = "docs"\nuri = "docs"\nexclude = ["sub"]\n'
    )
    done = project.json("run")
    assert (done["overlaps"], done["n_requested"], done["n_unchanged"]) == ([], 1, 1)
