"""What the page shows, without a browser: its HTML."""

import re
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from tests.api.served import Served
from tests.end_to_end.project import Project
from tests.page.conftest import MARKUP, TWO_STORES, Browser

PAGES = ["/", "/jobs", "/stores", "/spend", "/search?q=words", "/search", "/docs"]


class _Elements(HTMLParser):
    """Which elements a page has, and the names of their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def _pages_of(browser: Browser) -> list[str]:
    documents = [f"/documents/{doc['documentId']}" for doc in browser.documents().values()]
    [job] = browser.client.get("/api/ingestion-jobs").json()["jobs"]
    return [*PAGES, *documents, f"/jobs/{job['jobId']}"]


def test_nothing_of_a_document_becomes_markup(browser: Browser) -> None:
    """Names, titles, texts and stores' names are text on every page: no element, script or handler is theirs."""
    for path in _pages_of(browser):
        page = browser.get(path)
        for tag, attributes in _Elements(page).found:
            assert tag not in ("img", "b", "iframe", "object"), path
            assert tag != "script" or str(attributes.get("src", "")).startswith("/static/"), path
            assert not [name for name in attributes if name.startswith("on") or name == "style"], path
            assert not str(attributes.get("href", "")).startswith(("javascript:", "data:text")), path
        read = re.sub(r"<textarea.*?</textarea>", "", page, flags=re.DOTALL)
        assert "\u202e" not in read, path
        assert "single ones&#39;, 49" not in page, path


def test_a_hostile_text_is_shown_and_comes_back_as_it_is(browser: Browser) -> None:
    """What hides in a text is named where it is read; the field in which it is corrected has the text itself."""
    doc = next(doc for name, doc in browser.documents().items() if name.startswith("hostile"))
    page = browser.get(f"/documents/{doc['documentId']}").replace("\u2068", "")
    assert "⟨U+202E⟩gnp.exe" in page
    field = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert field is not None
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in field[1]
    assert MARKUP not in page


def test_what_is_live_is_sent_only_when_it_changed(browser: Browser) -> None:
    """A live part says what it shows; asked again with that, nothing is sent as long as nothing changed."""
    doc = next(iter(browser.documents().values()))
    for path in ("/", f"/documents/{doc['documentId']}", "/jobs"):
        page = browser.get(path)
        for address in re.findall(r'hx-get="([^"]+)"', page):
            assert browser.client.get(address.replace("&amp;", "&")).status_code == 204
            fresh = browser.client.get(re.sub(r"seen=[0-9a-f]+", "seen=0", address.replace("&amp;", "&")))
            assert fresh.status_code == 200
            assert address in fresh.text


def test_a_failed_document_says_why_and_what_to_do(browser: Browser) -> None:
    """Its page and the page of its job have the reason in words and what a person can do about it."""
    doc = browser.documents()["empty.md"]
    [job] = browser.client.get("/api/ingestion-jobs").json()["jobs"]
    for path in (f"/documents/{doc['documentId']}", f"/jobs/{job['jobId']}"):
        page = browser.get(path)
        assert "Empty file." in page
        assert "Fill or remove it." in page


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("source=docs&status=&reason=&store=&state=&text=", 3),
        ("reason=empty_file", 1),
        ("text=hostile&source=docs", 1),
        ("store=legal&state=Ingested", 2),
        ("state=Stale", 0),
    ],
)
def test_the_library_narrows(browser: Browser, query: str, names: int) -> None:
    """The library shows the documents that have the facets; a facet that is left open narrows nothing."""
    assert len(re.findall(r'name="id"', browser.get(f"/?{query}"))) == names


def test_a_list_goes_on_where_it_ended(browser: Browser) -> None:
    """From page to page the library shows every document once, and keeps the filter."""
    path, seen = "/?limit=2&source=docs", list[str]()
    while path:
        page = browser.get(path)
        seen += re.findall(r'name="id" value="([^"]+)"', page)
        further = re.search(r'href="(/\?[^"]+)" rel="next"', page)
        path = further[1].replace("&amp;", "&") if further else ""
        assert not path or "source=docs" in path
    assert sorted(seen) == sorted(str(doc["documentId"]) for doc in browser.documents().values())


def test_a_problem_is_a_page_for_a_browser(browser: Browser, shown: Served) -> None:
    """What goes wrong is told to a browser as a page that says what to do; to a program as before."""
    page = browser.get("/documents/nope", 404)
    assert "There is no document &#39;nope&#39;." in page
    assert "To the library" in page
    assert browser.get("/?status=NOPE", 422)
    answer = shown.client.get("/documents/nope")
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_stranger_can_sign_in(shown: Served) -> None:
    """Who is not signed in gets a form for a token, in a page that carries its own style and may run nothing."""
    answer = httpx.get(shown.url, headers={"Accept": "text/html"})
    assert answer.status_code == 401
    assert '<form action="/sign-in" method="post">' in answer.text
    assert 'name="token"' in answer.text
    assert answer.headers["referrer-policy"] == "same-origin"
    policy = answer.headers["content-security-policy"]
    assert "style-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert "<script" not in answer.text


def test_forms_of_a_page_may_be_sent(browser: Browser) -> None:
    """A page lets its own forms say where they come from: without that, the server takes them for another site's."""
    assert browser.client.get("/").headers["referrer-policy"] == "same-origin"


def test_what_a_page_loads_is_there_for_ever(browser: Browser) -> None:
    """Every file a page names is the package's own, and its address changes with it."""
    files = re.findall(r'(?:href|src)="(/static/[^"]+)"', browser.get("/"))
    assert len(files) == 3
    for file in files:
        assert "immutable" in browser.client.get(file).headers["cache-control"]
    assert browser.client.get("/static/../rendering.py").status_code == 404
    assert browser.client.get("/static/htmx.LICENSE.txt").status_code == 404


def test_dagster_is_linked_where_it_is_known(browser: Browser) -> None:
    """With `dagster_url` a document links to its partition and its run."""
    doc = next(doc for doc in browser.documents().values() if doc["lifecycle"] == "Ingested")
    page = browser.get(f"/documents/{doc['documentId']}")
    assert f"https://dagster.example.org/assets/extracted?view=partitions&amp;partition={doc['documentId']}" in page
    assert f"https://dagster.example.org/runs/{doc['lastRunId']}" in page


def test_a_newcomer_is_told_the_next_step(tmp_path: Path) -> None:
    """Where there is nothing yet, each page says how something comes about."""
    with Served(Project(tmp_path, TWO_STORES)) as server:
        browser = Browser(server)
        assert "ingest run" in browser.get("/")
        assert "There is no job yet" in browser.get("/jobs")
        assert "Nothing was spent" in browser.get("/spend")
        assert "Default" in browser.get("/stores")
        assert "Nothing was found" in browser.get("/search?q=words")


def test_who_may_only_look_is_offered_nothing_else(tmp_path: Path) -> None:
    """With --read-only no page has a form that changes something, and none is taken."""
    project = Project(tmp_path, TWO_STORES)
    project.write("a.md", "Some words.")
    assert project.run("run").returncode == 0
    with Served(project, "--read-only") as server:
        browser = Browser(server)
        [doc] = browser.documents().values()
        for path in ("/", f"/documents/{doc['documentId']}"):
            assert '<button class="main">' not in browser.get(path)
            assert "<textarea" not in browser.get(path)
        browser.send("/jobs", {"id": doc["documentId"], "store": "default"}, 403)
        browser.send(f"/documents/{doc['documentId']}/chunks/x", {"text": "a"}, 403)
