"""The documentation says what is so."""

import re
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from ingest_assets.cli.app import app
from ingest_assets.settings import Settings, SourceSettings, StoreSettings, load_settings
from resources.document_state.reasons import Reason

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_readme_shows_every_key_with_its_default() -> None:
    """The configuration in the README is complete, and each value in it is the default; what is unset has none."""
    shown = tomllib.loads(re.search(r"```toml\n(.*?)```", README, re.DOTALL)[1])
    defaults = Settings().model_dump(mode="json", exclude_none=True)
    assert shown.pop("sources") == [
        SourceSettings(name="samples", uri="samples").model_dump(mode="json", exclude={"org_id"})
    ]
    assert shown.pop("stores") == [StoreSettings(slug="default").model_dump(mode="json")]
    del defaults["sources"], defaults["stores"]
    assert shown == defaults


def test_the_configuration_that_is_shipped_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ingest.toml` at the top changes nothing."""
    monkeypatch.chdir(ROOT)
    assert load_settings({}).model_dump() == Settings().model_dump()


def test_the_readme_explains_every_reason() -> None:
    """Each reason stands in the README with the words that are shown everywhere."""
    for reason in Reason:
        assert re.search(rf"\| `{reason.value}` \| [a-z ]+ \| {re.escape(reason.what_to_do)} \|", README), reason


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
