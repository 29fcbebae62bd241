"""A mail with a PDF and a zip in it, from its source into the stores and out again."""

from email.message import EmailMessage

import pytest

from tests.end_to_end.project import Project
from tests.parsing import makers
from tests.parsing.makers import zipped

_CONFIG = """
default_embedder = "hash"
[[sources]]
name = "docs"
uri = "docs"
[[stores]]
slug = "default"
"""


def _write_mail(project: Project, **texts: str) -> None:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "Survey", "a@example.org", "b@example.org"
    message.set_content("The survey of the quay is attached.")
    message.add_attachment(
        makers.pdf("The crane was inspected."), maintype="application", subtype="pdf", filename="s.pdf"
    )
    message.add_attachment(
        zipped({f"{name}.md": text for name, text in texts.items()}),
        maintype="application",
        subtype="zip",
        filename="notes.zip",
    )
    project.write("mail.eml", message.as_string())


@pytest.fixture
def mailed(project: Project) -> Project:
    """A mail, a PDF and two notes in a zip, ingested."""
    project.configure(_CONFIG)
    project.write("other.md", "Another document.")
    _write_mail(project, wind="The wind was strong.", tide="The tide was low.")
    done = project.json("run")
    assert (done["n_succeeded"], done["n_skipped"], done["n_failed"]) == (5, 1, 0)
    return project


def _presences(project: Project, *named: str) -> list[str]:
    return [project.json("show", f"docs:mail.eml{name}").get("presence", "present") for name in named]


def test_found_changed_and_gone(mailed: Project) -> None:
    """Each part is found by itself, costs itself when it changes, and vanishes with the mail, ids being the same."""
    hit = mailed.json("search", "The tide was low.", "-k", "1")[0]
    shown = mailed.json("show", "docs/mail.eml!/notes.zip!/tide.md")
    assert shown["document_id"] == hit["document_id"]
    assert shown["parent"] == "docs:mail.eml!/notes.zip"
    assert mailed.json("show", "docs/mail.eml!/notes.zip")["extraction"]["reason"] == "archive"
    assert mailed.json("run")["n_requested"] == 0

    _write_mail(mailed, wind="The wind was strong.", tide="The tide was high.")
    done = mailed.json("run")
    assert (done["n_requested"], done["n_failed"]) == (3, 0)  # mail, zip and the note
    assert mailed.json("show", "docs/mail.eml!/notes.zip!/tide.md")["document_id"] == shown["document_id"]
    assert mailed.json("search", "The tide was high.", "-k", "1")[0]["text"] == "The tide was high."

    (mailed.docs / "mail.eml").unlink()
    assert mailed.run("run").returncode == 0
    assert {hit["filename"] for hit in mailed.json("search", "tide", "-k", "10")} == {"other.md"}


def test_deleted_and_restored_with_its_mail(mailed: Project) -> None:
    """What lies in a document is deleted with it, stays away, and comes back with it."""
    within = ["", "!/s.pdf", "!/notes.zip", "!/notes.zip!/wind.md", "!/notes.zip!/tide.md"]
    deleted = mailed.json("delete", "docs/mail.eml", "--yes")["documents"]
    assert [document["fate"] for document in deleted] == ["deleted"] * 5
    assert mailed.json("run")["n_requested"] == 0
    assert _presences(mailed, *within) == ["erased"] * 5
    mailed.json("restore", "docs/mail.eml")
    assert _presences(mailed, *within) == ["present"] * 5
    assert {hit["filename"] for hit in mailed.json("search", "tide", "-k", "10")} >= {"mail.eml", "mail.eml!/s.pdf"}


def test_a_source_without_members(project: Project) -> None:
    """With `members = false` a mail is its text, and an archive is skipped with what is in it."""
    project.configure(_CONFIG.replace('uri = "docs"', 'uri = "docs"\nmembers = false'))
    _write_mail(project, wind="The wind was strong.")
    (project.docs / "a.zip").write_bytes(zipped({"wind.md": "The wind was strong."}))
    done = project.json("run")
    assert (done["n_succeeded"], done["n_skipped"]) == (1, 1)
