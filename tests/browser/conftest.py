"""A real browser: Debian's Chromium, driven by Playwright, which downloads none of its own."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tests.api.served import Served
from tests.end_to_end.project import Project

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE_MS = 60_000
TWO_STORES = """
default_embedder = "hash"
[[sources]]
name = "docs"
uri = "docs"
[[stores]]
slug = "default"
name = "Default"
[[stores]]
slug = "legal"
name = "Legal"
"""


class Visited(Served):
    """A served project whose visitors leave before it stops: their pages would go on asking."""

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self.people: list[Person] = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for person in self.people:
            person.leave()
        super().__exit__(kind, error, trace)


class Person:
    """Somebody who has signed in: uses a page, and notices what a browser complains about."""

    def __init__(self, page: Page, served: Visited, screenshots: Path) -> None:
        self.page = page
        self.url = served.url
        self.clicks = 0
        self.complaints: list[str] = []
        self._screenshots = screenshots
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(served.sign_in)

    def click(self, selector: str) -> None:
        """One click."""
        self.clicks += 1
        self.page.click(selector)

    def looks(self, name: str) -> None:
        """Take a picture of the whole page; it is no wider than its window, and axe finds nothing serious in it."""
        self.page.screenshot(path=self._screenshots / f"{name}.png", full_page=True)
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide"
        found = Axe().run(self.page).response["violations"]
        serious = [
            f"{fault['id']}: {fault['help']}: {[node['html'] for node in fault['nodes']][:3]}"
            for fault in found
            if fault["impact"] in ("serious", "critical")
        ]
        assert not serious, f"{name}: {serious}"

    def leave(self) -> None:
        """Close the browser's window."""
        self.page.context.close()

    def _hear(self, message: object) -> None:
        kind, text = getattr(message, "type", ""), getattr(message, "text", "")
        if kind in ("error", "warning"):
            self.complaints.append(text)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser, once for all tests."""
    program = shutil.which("chromium")
    assert program, "There is no chromium here: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures go."""
    named = os.environ.get("SCREENSHOTS", "")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def visit(chromium: Browser, screenshots: Path) -> Iterator[Callable[..., Person]]:
    """A function that signs somebody in, with a browser as he wants it; in the end nobody's browser has complained."""
    people: list[Person] = []

    def come(served: Visited, **options: object) -> Person:
        page = chromium.new_context(**options).new_page()  # type: ignore[arg-type]
        person = Person(page, served, screenshots)
        people.append(person)
        served.people.append(person)
        return person

    yield come
    for person in people:
        assert person.complaints == []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with two stores, and nothing in it yet."""
    return Project(tmp_path, TWO_STORES)
