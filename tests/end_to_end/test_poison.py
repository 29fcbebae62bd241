"""One poisonous document among twenty: the other nineteen are done, and it ends with its own reason, once."""

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from resources.document_source.document_ids import key_of
from tests.end_to_end.project import Project
from tests.parsing import makers

MIB = 2**20
HOSTILE = 'splitter = "tests.parsing.splitters:hostile"'
CONFIG = """
[[sources]]
name = "docs"
uri = "docs"
[runs]
parser_workers = 2
[chunking]
{chunking}
[limits]
{limits}
"""


def bomb() -> bytes:
    """A PDF whose page inflates to 300 MiB."""
    return makers.pdf_of(zlib.compress(bytes(300 * MIB), 9), dictionary=b"/Filter/FlateDecode")


@pytest.mark.parametrize(
    ("name", "content_of", "chunking", "limits", "reason"),
    [
        ("hang.txt", lambda: b"HANG", HOSTILE, "wall_seconds = 1.0", "timed_out"),
        ("crash.txt", lambda: b"SEGFAULT", HOSTILE, "", "parser_crashed"),
        (
            "memory.json",
            lambda: b"[" + b"[1]," * 3_000_000 + b"[1]]",
            "",
            f"memory_bytes = {160 * MIB}",
            "out_of_memory",
        ),
        ("bomb.pdf", bomb, "", "", "inflates_too_much"),
    ],
    ids=["hang", "crash", "memory", "bomb"],
)
def test_nineteen_are_done(
    tmp_path: Path, name: str, content_of: Callable[[], bytes], chunking: str, limits: str, reason: str
) -> None:
    """The job is partial, the nineteen stand in the store, and the poison is not tried again by itself."""
    project = Project(tmp_path, CONFIG.format(chunking=chunking, limits=limits))
    for number in range(19):
        project.write(f"{number}.md", f"# Document {number}\n\nfine")
    (project.docs / name).write_bytes(content_of())
    done = project.json("run", code=1)
    assert (done["status"], done["n_succeeded"], done["n_failed"]) == ("partial", 19, 1)
    status = project.json("status")
    assert status["reasons"] == {reason: 1}
    assert status["stores"] == {"default": {"Ingested": 19}}
    shown = project.json("show", str(project.docs / name))
    assert shown["extraction"]["attempts"] == 1
    assert "next_attempt_at" not in shown["extraction"]
    assert project.json("run")["n_requested"] == 0


def test_a_folder_of_everything(tmp_path: Path) -> None:
    """Every file ends in exactly one terminal status, with a reason if it failed; no success is without chunks."""
    project = Project(tmp_path, '[[sources]]\nname = "docs"\nuri = "docs"\nexclude = []\n')
    expected = _folder_of_everything(project.docs)
    done = project.json("run", code=1)
    assert set(project.json("status")["extraction"]) == {"COMPLETED", "FAILED", "SKIPPED"}
    worked_on = {key_of(result["source_uri"]).decode(): result for result in done["results"]}
    skipped = {result["filename"]: result["reason"] for result in done["skipped"]}
    assert {name: result.get("reason") for name, result in worked_on.items()} | skipped == expected
    for result in worked_on.values():
        assert (result["status"] == "succeeded") == ("reason" not in result) == (result.get("n_chunks", 0) > 0)


def _folder_of_everything(folder: Path) -> dict[str, str | None]:
    """Write files of every kind of trouble; what each must end as."""
    entities = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    files: dict[str, tuple[bytes, str | None]] = {
        "empty.txt": (b"", "empty_file"),
        "blank.txt": (b" \n" * 100, "no_text"),
        "noise.md": (b"***\n---\n", "no_text"),
        "nul.txt": (b"a\0b words", None),
        "scan.pdf": (makers.pdf("", image=True), "image_only"),
        "drawing.pdf": (makers.pdf(""), "no_text"),
        "locked.pdf": (makers.pdf("words", encrypt=True), "password_required"),
        "cut.pdf": (b"%PDF-1.7\n1 0 obj\n<<", "malformed"),
        "fine.pdf": (makers.pdf("words"), None),
        "named.pdf": (b"Text, whatever its name says.", None),
        "cut.docx": (makers.word_report()[:2000], "malformed"),
        "entities.docx": (makers.word("<w:p/>", entities), "malformed"),
        "entities.xml": (f"{entities}<r>&x;</r>".encode(), "malformed"),
        "deep.json": (b"[" * 20_000 + b"]" * 20_000, "too_deep"),
        "deep.eml": (makers.mail_within(4), "too_deep"),
        "old.doc": (makers.ole("WordDocument"), "unsupported_type"),
        "picture.png": (b"\x89PNG\r\n\x1a\n" + bytes(50), "unsupported_type"),
        "-leading dash, comma \U0001f600.txt": (b"words", None),
        "\u202etxt.exe": (b"words", None),
        "new\nline.txt": (b"words", None),
        "%2Fetc%2Fpasswd": (b"words", None),
        ".hidden": (b"words", None),
    }
    for name, (content, _) in files.items():
        (folder / name).write_bytes(content)
    return {name: reason for name, (_, reason) in files.items()}
