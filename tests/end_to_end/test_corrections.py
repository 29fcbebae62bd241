"""A person corrects a chunk: one store gets it when somebody asks, the other waits, and nothing else is touched."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest_assets.upkeep.edits import Edit
from tests.end_to_end.project import INGEST, Project
from tests.records.processes_contract import SPAWN
from tests.upkeep.corrected_documents import correct_and_die

N = 12
COUNTING = '''
from resources.embedder.hash_embedder import HashEmbedder
from resources.extractor.local_extractor import LocalExtractor

class CountingEmbedder(HashEmbedder):
    """Writes down each text it is asked for."""

    name = "counting"

    def embed(self, texts):
        with open("embedded", "a") as told:
            told.writelines(f"{len(text)}\\n" for text in texts)
        return super().embed(texts)

class CountingExtractor(LocalExtractor):
    """Writes down each call."""

    async def extract(self, document_id, chunks):
        with open("extracted", "a") as told:
            told.write(document_id + "\\n")
        return await super().extract(document_id, chunks)
'''
CONFIG = """
extractor = "counting:CountingExtractor"
default_embedder = "counting:CountingEmbedder"
[[sources]]
name = "docs"
uri = "docs"
[[stores]]
slug = "default"
[[stores]]
slug = "archive"
[runs]
parser_workers = 1
"""
Rows = dict[str, set[tuple[Any, ...]]]


class Counted(Project):
    """A project that knows what was extracted and embedded, and reads its stores around the program."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, CONFIG)
        self.environment["PYTHONPATH"] = str(root)
        (root / "counting.py").write_text(COUNTING)
        for i in range(N):
            parts = (f"## Part {j}\n\n" + f"In part {j} of text {i} the engine is overhauled. " * 15 for j in range(5))
            self.write(f"{i}.md", f"# Title {i}\n\n" + "\n\n".join(parts))

    def count(self, what: str) -> int:
        """How many texts were embedded, or documents extracted."""
        told = self.root / what
        return len(told.read_text().splitlines()) if told.exists() else 0

    def rows(self, store: str) -> Rows:
        """Every row of a store, by table."""
        with duckdb.connect(str(self.root / ".ingest" / "stores" / f"{store}.duckdb"), read_only=True) as connection:
            return {
                table: {tuple(map(str, row)) for row in connection.execute(f"SELECT * FROM {table}").fetchall()}
                for table in ("chunks", "documents", "entries")
            }

    def chunks(self, document: str) -> list[dict[str, Any]]:
        """What `ingest chunks show` says of a document's chunks."""
        found: list[dict[str, Any]] = self.json("chunks", "show", document)["chunks"]
        return found

    def edit(self, document: str, lines: list[dict[str, Any]], *options: str, code: int = 0) -> str:
        """Correct chunks from a file; what was said to people."""
        (self.root / "lines").write_text("\n".join(map(json.dumps, lines)))
        done = self.run("chunks", "edit", document, "--file", "lines", *options)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def states(self, store: str) -> dict[str, int]:
        """A store's documents by state."""
        found: dict[str, int] = self.json("status")["stores"][store]
        return found


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    """Documents of several chunks that stand in two stores."""
    project = Counted(tmp_path)
    project.json("run")
    return project


def corrected(chunk: dict[str, Any]) -> dict[str, Any]:
    """The line of a chunk with another text."""
    return {**chunk, "text": chunk["text"].replace("engine", "machine")}


def test_one_chunk_of_one_document(counted: Counted) -> None:
    """One embedding, one row, no extraction; the other store is Stale for that document alone until somebody asks."""
    before = {store: counted.rows(store) for store in ("default", "archive")}
    embedded, extracted = counted.count("embedded"), counted.count("extracted")
    told = counted.edit("docs/3.md", [corrected(counted.chunks("docs/3.md")[2])], "--by", "Ann", "--note", "typo")
    assert "Stale in store 'default': `ingest run --store default --stale`" in told
    for store in ("default", "archive"):
        assert counted.states(store) == {"Ingested": N - 1, "Stale": 1}
    assert counted.json("run", "--store", "default", "--stale")["n_succeeded"] == 1
    assert (counted.count("embedded") - embedded, counted.count("extracted") - extracted) == (1, 0)
    after = counted.rows("default")
    assert [len(before["default"][table] - after[table]) for table in ("chunks", "documents")] == [1, 1]
    assert [len(after[table] - before["default"][table]) for table in ("chunks", "documents")] == [1, 1]
    [chunk] = after["chunks"] - before["default"]["chunks"]
    assert any("machine is overhauled" in value for value in chunk)
    assert len(after["entries"]) == len(before["default"]["entries"])

    for arguments in (("run", "--mode", "resume"), ("run",), ("run", "docs/3.md"), ("run", "--mode", "retry-failed")):
        assert counted.json(*arguments)["n_requested"] == 0
        counted.json("plan", "--apply")
        assert counted.states("default") == {"Ingested": N}
        assert counted.states("archive") == {"Ingested": N - 1, "Stale": 1}
    assert counted.rows("archive") == before["archive"]
    _, default, archive = counted.json("why", "docs/3.md", code=1)["standings"]
    assert default["verdict"] == "current"
    assert archive["why"].startswith("chunks corrected by Ann at ")
    assert [difference["part"] for difference in archive["differences"]] == ["content"]
    assert archive["what_to_do"] == "`ingest run --store archive --stale`"
    assert counted.json("why", "docs/4.md")["current"]

    assert counted.json("run", "--stale")["n_succeeded"] == 1
    assert counted.states("archive") == {"Ingested": N}
    assert counted.count("embedded") - embedded == 2
    assert counted.json("search", "anything", "-k", "100", "--document", "docs/3.md", "--store", "archive")


def test_killed_in_the_middle(counted: Counted) -> None:
    """Killed between the artifact and the record, nothing shows; resume frees the document, and it can be redone."""
    [chunk] = [chunk for chunk in counted.chunks("docs/3.md") if "part 2" in chunk["text"]]
    document_id = counted.json("show", "docs/3.md")["document_id"]
    edits = [Edit(1, chunk["chunk_id"], corrected(chunk)["text"])]
    process = SPAWN.Process(target=correct_and_die, args=(str(counted.root), document_id, edits))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert chunk in counted.chunks("docs/3.md")
    assert counted.states("default") == {"Ingested": N}
    assert counted.json("run", "--mode", "resume")["n_failed"] == 0
    assert counted.states("default") == {"Ingested": N}
    counted.edit("docs/3.md", [corrected(chunk)])
    assert counted.states("default") == {"Ingested": N - 1, "Stale": 1}


def test_taken_back(counted: Counted) -> None:
    """Reset, both stores are as they were, one of them without any work; its rows are those of the beginning."""
    before = counted.rows("default")["chunks"]
    counted.edit("docs/3.md", [corrected(counted.chunks("docs/3.md")[2])])
    counted.json("run", "--store", "default", "--stale")
    done = counted.json("chunks", "reset", "docs/3.md")
    assert (done["n_changed"], done["n_corrected"], done["stale_in"]) == (1, 0, ["default"])
    assert counted.states("archive") == {"Ingested": N}
    counted.json("run", "--stale")
    texts = {row[5] for row in before}
    assert {row[5] for row in counted.rows("default")["chunks"]} == texts


def test_void_is_told(counted: Counted) -> None:
    """A correction of text that changed is in the run's outcome, in the record and among the chunks."""
    counted.edit("docs/3.md", [corrected(counted.chunks("docs/3.md")[2])], "--by", "Ann")
    path = counted.docs / "3.md"
    path.write_text(path.read_text().replace("In part 2 of", "Within part 2 of"))
    done = counted.run("run")
    assert "Corrections that are void" in done.stdout
    assert "1 correction is void" in counted.run("show", "docs/3.md").stdout
    shown = counted.run("chunks", "show", "docs/3.md").stdout
    assert "Void:" in shown.partition("machine")[0]
    [void] = counted.json("chunks", "show", "docs/3.md")["void_corrections"]
    assert void["correction"]["by"] == "Ann"
    assert counted.json("chunks", "reset", "docs/3.md", void["chunk_id"])["n_void"] == 0
    assert "void" not in counted.run("show", "docs/3.md").stdout


def test_what_is_refused(counted: Counted) -> None:
    """A wrong line, an unknown document and an overtaken edit end in a sentence and an exit code; nothing changes."""
    chunk = counted.chunks("docs/3.md")[2]
    assert "Line 2: It has no chunk 'x'" in counted.edit(
        "docs/3.md", [corrected(chunk), {"chunk_id": "x", "text": "y"}], code=2
    )
    assert "No document 'docs/none.md'" in counted.edit("docs/none.md", [], code=2)
    assert counted.chunks("docs/3.md")[2] == chunk
    counted.edit("docs/3.md", [corrected(chunk)], "--by", "Ann\n\x1b[31m")
    assert "was changed by Ann [31m at" in counted.edit("docs/3.md", [{**chunk, "text": "mine"}], code=1)
    assert "no chunk 'nonsense'" in counted.run("chunks", "reset", "docs/3.md", "nonsense").stderr
    no_terminal = counted.run("chunks", "edit", "docs/3.md")
    assert (no_terminal.returncode, "--file" in no_terminal.stderr) == (2, True)


def test_standard_input_and_lines_as_shown(counted: Counted) -> None:
    """What `show --jsonl` writes is what `edit` reads, and as it is it changes nothing."""
    lines = counted.run("chunks", "show", "docs/3.md", "--jsonl").stdout
    assert len(lines.splitlines()) == len(counted.chunks("docs/3.md"))
    with counted.start("chunks", "edit", "docs/3.md", "--file", "-", "--json", stdin=True) as editing:
        told, _ = editing.communicate(lines)
    assert json.loads(told)["n_changed"] == 0


def on_a_terminal(counted: Counted, editor: str, *arguments: str) -> tuple[int, str]:
    """Run a command on a terminal of its own, with an editor; its exit code and what was shown."""
    import pty

    shown = bytearray()

    def read(descriptor: int) -> bytes:
        data = os.read(descriptor, 4096)
        shown.extend(data)
        return data

    script = counted.root / "editor.py"
    script.write_text(editor)
    environment = {"EDITOR": f"{sys.executable} {script}", "TMPDIR": str(counted.root), **counted.environment}
    command = ["env", "-C", str(counted.root), *(f"{k}={v}" for k, v in environment.items()), str(INGEST), *arguments]
    code = os.waitstatus_to_exitcode(pty.spawn(command, read))
    return code, " ".join(shown.decode().split())  # a terminal wraps lines


REPLACING = """
import pathlib, sys
path = pathlib.Path(sys.argv[1])
path.write_text(path.read_text().replace("{old}", "{new}"))
"""


def test_an_editor(counted: Counted) -> None:
    """The editor gets a line for each chunk; what it saves is taken, and kept in a file if it cannot be."""
    replacing = REPLACING.format(old="part 2 of text", new="part two of text")
    code, shown = on_a_terminal(counted, replacing, "chunks", "edit", "docs/3.md", "--by", "Ann")
    assert (code, "Chunks changed: 1" in shown) == (0, True), shown
    assert "part two of text" in counted.chunks("docs/3.md")[2]["text"]
    assert list(counted.root.glob("chunks-*.jsonl")) == []
    code, shown = on_a_terminal(counted, REPLACING.format(old="chunk_id", new="chunk"), "chunks", "edit", "docs/3.md")
    assert (code, "What was written is kept" in shown) == (2, True), shown
    [kept] = counted.root.glob("chunks-*.jsonl")
    assert (kept.stat().st_mode & 0o077, '"chunk"' in kept.read_text()) == (0, True)
    code, shown = on_a_terminal(counted, "raise SystemExit(3)", "chunks", "edit", "docs/3.md")
    assert (code, "ended with code 3" in shown) == (2, True), shown
