"""A served project whose documents nobody has prepared for being shown."""

from collections.abc import Iterator

import httpx
import pytest

from tests.api.served import PATIENCE, Served
from tests.end_to_end.project import Project

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
name = "<b>Legal</b>"
[api]
dagster_url = "https://dagster.example.org/"
"""
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE = f"""# Title {MARKUP}

A text with {MARKUP} & "quotes", 'single ones', {{{{ 7 * 7 }}}} and \u202egnp.exe that turns around.

## Second

</textarea><script>alert(3)</script>
"""


class Browser:
    """Asks as a browser does that has signed in: by cookie, for HTML, with the origin of the page."""

    def __init__(self, served: Served) -> None:
        self.client = httpx.Client(
            base_url=served.url, timeout=PATIENCE, headers={"Accept": "text/html", "Origin": served.url}
        )
        assert self.client.get(served.sign_in).status_code == 303

    def get(self, path: str, status: int = 200) -> str:
        """A page."""
        answer = self.client.get(path)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"].startswith("text/html")
        return answer.text

    def send(self, path: str, form: dict[str, object], status: int = 303) -> httpx.Response:
        """What a form sends."""
        answer = self.client.post(path, data=form)
        assert answer.status_code == status, answer.text
        return answer

    def documents(self) -> dict[str, dict[str, object]]:
        """Every document by its name, as programs see it."""
        found = self.client.get("/api/documents", params={"limit": 500}).json()["documents"]
        return {str(doc["name"]): doc for doc in found}


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Hostile documents in two stores, one of them named like markup. Tests only look at it."""
    project = Project(tmp_path_factory.mktemp("shown"), TWO_STORES)
    project.write("hostile <img src=x onerror=alert(4)>.md", HOSTILE)
    project.write("turned \u202egpj.md", "A short text.")
    project.write("empty.md", "")
    assert project.run("run").returncode in (0, 1)
    with Served(project) as server:
        yield server


@pytest.fixture(scope="session")
def browser(shown: Served) -> Iterator[Browser]:
    """Whoever looks at them."""
    browser = Browser(shown)
    yield browser
    browser.client.close()
