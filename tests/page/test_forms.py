"""What the forms of the page do, without a browser."""

import html
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.api.served import PATIENCE, Served
from tests.end_to_end.project import Project
from tests.page.conftest import TWO_STORES, Browser

FIRST = "The warranty covers five years."


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Documents that are Ingested in both stores, each for one test."""
    project = Project(tmp_path_factory.mktemp("forms"), TWO_STORES)
    for name in ("signed", "second", "many", "refused", "counted-1", "counted-2", "twice-1", "twice-2"):
        project.write(f"{name}.md", FIRST)
    assert project.run("run").returncode == 0
    return project


@pytest.fixture(scope="module")
def browser(project: Project) -> Iterator[Browser]:
    """Somebody who uses it."""
    with Served(project) as served:
        browser = Browser(served)
        yield browser
        browser.client.close()


def _id(browser: Browser, name: str) -> str:
    return str(browser.documents()[name]["documentId"])


def _form(page: str) -> tuple[str, dict[str, object]]:
    """Where the first form in which a chunk is corrected goes, and what it sends."""
    found = re.search(r'<form action="([^"]+/chunks/[0-9a-f]+)" method="post">(.*?)</form>', page, re.DOTALL)
    assert found is not None
    original = re.search(r'name="original" value="([^"]+)"', found[2])
    text = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", found[2], re.DOTALL)
    assert original is not None
    assert text is not None
    return found[1], {"original": original[1], "text": html.unescape(text[1])}


def test_a_correction_is_signed_and_makes_stores_stale(browser: Browser, project: Project) -> None:
    """The chunk has the new text, and by whom and why; every store that holds it is Stale; then it is taken back."""
    document = f"/documents/{_id(browser, 'signed.md')}"
    address, form = _form(browser.get(document))
    assert form["text"] == FIRST
    answer = browser.send(address, {**form, "text": "Six years.\r\nAbroad too.", "note": "as agreed"})
    assert answer.headers["location"] == f"{document}?from=1#c-1"
    shown = project.json("chunks", "show", document.rpartition("/")[2])["chunks"][0]
    assert shown["text"] == "Six years.\nAbroad too."
    assert (shown["correction"]["by"], shown["correction"]["note"]) == ("owner", "as agreed")
    states = [store["state"] for store in browser.client.get(f"/api{document}").json()["stores"]]
    assert states == ["Stale", "Stale"]
    address, form = _form(browser.get(document))
    browser.send(f"{address}/reset", form)
    assert _form(browser.get(document))[1]["text"] == FIRST


def test_whoever_is_second_gets_both_texts(browser: Browser) -> None:
    """At the first correction of a chunk and every later one: who is late gets 412, the new text and his own."""
    document = f"/documents/{_id(browser, 'second.md')}"
    for number in range(3):
        address, form = _form(browser.get(document))
        browser.send(address, {**form, "text": f"Corrected {number} times."})
        answer = browser.send(address, {**form, "text": f"Mine {number}.", "note": f"why {number}"}, 412)
        again, kept = _form(answer.text)
        assert f"Corrected {number} times." in answer.text
        assert (kept["text"], kept["original"]) == (f"Mine {number}.", form["original"])
        assert f'value="why {number}"' in answer.text
        browser.send(again, {**kept, "text": f"Both {number}."})
        assert _form(browser.get(document))[1]["text"] == f"Both {number}."


def test_of_many_at_once_one_is_taken(browser: Browser) -> None:
    """Ten people save at the same moment: one text is there afterwards, the nine others have theirs back."""
    document = f"/documents/{_id(browser, 'many.md')}"
    address, form = _form(browser.get(document))
    with ThreadPoolExecutor(10) as threads:
        answers = list(
            threads.map(lambda n: browser.client.post(address, data={**form, "text": f"By {n}."}), range(10))
        )
    taken = [n for n, answer in enumerate(answers) if answer.status_code == 303]
    assert len(taken) == 1
    assert {answer.status_code for answer in answers} == {303, 412}
    assert _form(browser.get(document))[1]["text"] == f"By {taken[0]}."
    for number, answer in enumerate(answers):
        assert answer.status_code == 303 or f"By {number}." in answer.text


@pytest.mark.parametrize(("text", "said"), [("", "is empty"), ("a\0b", "NUL"), ("x" * 100_001, "more than")])
def test_what_cannot_be_a_text_comes_back(browser: Browser, text: str, said: str) -> None:
    """A text that no chunk can have is refused with the reason, and stays in the form."""
    address, form = _form(browser.get(f"/documents/{_id(browser, 'refused.md')}"))
    answer = browser.send(address, {**form, "text": text}, 422)
    assert said in answer.text
    assert _form(answer.text)[1]["text"] == text


def test_an_estimate_says_what_there_is_to_do(browser: Browser, project: Project) -> None:
    """Only what is not up to date counts, and where everything is, there is no job to begin."""
    ids = [_id(browser, name) for name in ("counted-1.md", "counted-2.md")]
    answer = browser.send("/reingest", {"id": ids, "store": ["default", "legal"], "which": "ticked"}, 200)
    assert "There is nothing to do: 2 are up to date." in answer.text
    address, form = _form(browser.get(f"/documents/{ids[0]}"))
    browser.send(address, {**form, "text": "Six years."})
    answer = browser.send("/reingest", {"store": "legal", "which": "all", "filter": "source=docs&text=counted"}, 200)
    assert "Re-ingest 1 document?" in answer.text
    assert "1 of 2" in answer.text
    planned = project.json("plan", "--where", "state=Stale", "--store", "legal")["documents"]
    assert ids[0] in [each["document_id"] for each in planned]
    assert "at most 1;" in answer.text
    assert "0 of 1" in answer.text


def test_a_form_sent_twice_begins_one_job(browser: Browser) -> None:
    """Two clicks, or the back button, lead to the same job; another store or document to another one."""
    form = {"id": _id(browser, "twice-1.md"), "store": "default", "key": "a key"}
    before = len(browser.client.get("/api/ingestion-jobs").json()["jobs"])
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: browser.send("/jobs", form), range(2))
    assert first.headers["location"] == second.headers["location"]
    assert len(browser.client.get("/api/ingestion-jobs").json()["jobs"]) == before + 1
    for other in ({"store": "legal"}, {"id": _id(browser, "twice-2.md")}):
        assert browser.send("/jobs", {**form, **other}).headers["location"] != first.headers["location"]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"store": "default"}, "No documents are chosen."),
        ({"id": "a"}, "No store is chosen."),
        ({"id": "nope", "store": "default"}, "1 of the documents is not there"),
        ({"which": "all", "filter": "state=Nonsense", "store": "default"}, "what cannot be"),
        ({"which": "all", "filter": "", "store": "nope"}, "Unknown store"),
    ],
)
def test_a_form_that_leaves_something_open_is_refused(browser: Browser, form: dict[str, object], said: str) -> None:
    """Without documents or a store, or with ones that are not there, nothing begins, and the page says why."""
    answer = browser.client.post("/jobs", data=form)
    assert answer.status_code in (404, 422)
    assert said in html.unescape(answer.text)


def test_another_site_changes_nothing(browser: Browser) -> None:
    """A form on somebody else's page, sent with the cookie, is refused."""
    form = {"id": _id(browser, "twice-1.md"), "store": "default"}
    for origin in ("https://elsewhere.example.org", "null"):
        assert browser.client.post("/jobs", data=form, headers={"Origin": origin}).status_code == 403


def test_another_organisation_sees_nothing(tmp_path: Path) -> None:
    """Pages of documents, chunks and jobs of others are not there; lists, counts and spend say nothing of them."""
    project = Project(tmp_path, TWO_STORES)
    project.write("secret.md", "Secret words.")
    job = project.json("run")
    token = project.json("tokens", "new", "--scope", "admin", "--org", "theirs")
    more = f'[[api.tokens]]\nhash = "{token["hash"]}"\nscopes = {json.dumps(token["scopes"])}\norg_id = "theirs"\n'
    project.configure(TWO_STORES + more)
    project.environment = {"INGEST_API_TOKEN": "a token of the owner, long enough"}
    with Served(project, token="a token of the owner, long enough") as served:
        [doc] = served.client.get("/api/documents").json()["documents"]
        headers = {"Accept": "text/html", "Authorization": f"Bearer {token['token']}"}
        with httpx.Client(base_url=served.url, timeout=PATIENCE, headers=headers) as other:
            address = f"/documents/{doc['documentId']}"
            for path in (address, f"{address}/standing", f"{address}/chunks/x", f"/jobs/{job['job_id']}"):
                assert other.get(path).status_code == 404
            for path in (f"{address}/chunks/x", f"{address}/chunks/x/reset", f"{address}/delete", "/reingest"):
                answer = other.post(path, data={"id": doc["documentId"], "store": "default", "text": "a"})
                assert answer.status_code == 404
            assert other.get("/spend").status_code == 403
            for path in ("/", "/jobs", "/stores", "/search?q=secret"):
                assert "secret.md" not in other.get(path).text
                assert job["job_id"][:8] not in other.get(path).text
