"""The documentation says what is so."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from ingest_assets.cli.app import app
from ingest_assets.settings import Settings, SourceSettings, StoreSettings, load_settings
from resources.document_state.reasons import Reason

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
COMMANDS = (ROOT / "docs" / "commands.md").read_text()
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _toml_of(page: str) -> dict[str, Any]:
    return tomllib.loads(re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1])


def test_every_key_is_shown_with_its_default() -> None:
    """The page on configuration is complete, and each value in it is the default; what is unset has none."""
    shown = _toml_of(CONFIGURATION)
    defaults = Settings().model_dump(mode="json", exclude_none=True)
    assert shown.pop("sources") == [
        SourceSettings(name="samples", uri="samples").model_dump(mode="json", exclude={"org_id"})
    ]
    assert shown.pop("stores") == [StoreSettings(slug="default").model_dump(mode="json")]
    del defaults["sources"], defaults["stores"]
    assert shown == defaults


def test_the_example_of_the_readme_is_a_configuration() -> None:
    """Whoever copies the README's example gets no error, and what it says."""
    settings = Settings.model_validate(_toml_of(README))
    assert [store.kind for store in settings.stores] == ["duckdb", "pgvector"]
    assert settings.spend.per_day_usd == 20


def test_every_command_is_explained() -> None:
    """Each command that `ingest --help` shows, and each below it, stands in a table of the page on commands."""
    for name, command in get_command(app).commands.items():
        below = getattr(command, "commands", None)
        for words in [f"{name} {each}" for each in below] if below else [name]:
            assert command.hidden or re.search(rf"^\| .*`ingest {words}\b", COMMANDS, re.MULTILINE), words


def test_the_configuration_that_is_shipped_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ingest.toml` at the top changes nothing."""
    monkeypatch.chdir(ROOT)
    assert load_settings({}).model_dump() == Settings().model_dump()


def test_the_readme_explains_every_reason() -> None:
    """Each reason stands in the README with the words that are shown everywhere."""
    for reason in Reason:
        assert re.search(rf"\| `{reason.value}` \| [a-z ]+ \| {re.escape(reason.what_to_do)} \|", README), reason


def test_every_page_is_found_from_the_readme() -> None:
    """The README links each page of `docs/`, and the index of decisions each decision."""
    for page in (ROOT / "docs").glob("*.md"):
        assert f"(docs/{page.name})" in README, page
    decisions = ROOT / "docs" / "decisions"
    listed = re.findall(r"\]\((.*?)\) (.*)", (decisions / "README.md").read_text())
    titles = {page.name: page.read_text().split("\n", 1)[0] for page in decisions.glob("[0-9]*.md")}
    assert {name: f"# {title}" for name, title in listed} == titles


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_targets_exist(page: Path) -> None:
    """Every `ingest …` and `make …` that a page names is there."""
    text = page.read_text()
    commands = set(get_command(app).commands)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`ingest ([a-z-]+)", text)) <= commands
    assert set(re.findall(r"^    ingest ([a-z-]+)", text, re.MULTILINE)) <= commands
    assert set(re.findall(r"(?:`|^    )make ([a-z-]+)", text, re.MULTILINE)) <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page is a file or folder of the project."""
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
