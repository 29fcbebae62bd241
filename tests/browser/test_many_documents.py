"""Many documents and their jobs in a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import TWO_STORES, Person, Visited
from tests.end_to_end.project import Project

pytestmark = pytest.mark.browser

# Every headline that a page shows, one after the other.
REMEMBER = """() => {
    window.shown = [];
    setInterval(() => {
        const now = document.querySelector(".headline").innerText.trim().replace(/\\s+/g, " ");
        if (now !== window.shown.at(-1)) window.shown.push(now);
    }, 50);
}"""


def test_a_job_from_the_estimate_to_the_retry(project: Project, visit: Callable[..., Person]) -> None:
    """Estimate, start, watch it live, see why a document failed and what to do, mend it, retry: all in the browser."""
    for number in range(80):
        project.write(f"{number:03d}.md", f"# Number {number}\n\nDocument {number} has its words.")
    broken = project.write("broken.md", "")
    one_store, _, another = TWO_STORES.rpartition("[[stores]]")
    project.configure(f"{one_store}[runs]\ngroup = 10\n")
    assert project.run("run").returncode == 1
    project.configure(f"{one_store}[[stores]]{another}[runs]\ngroup = 10\n")
    with Visited(project) as served:
        person = visit(served)
        page = person.page
        expect(page.locator(".strip")).to_contain_text("81 documents")
        frame, legend = (page.locator(f"fieldset.actions{part}").bounding_box() for part in ("", " legend"))
        assert frame["y"] <= legend["y"]  # it floats over the table: what stuck out would lie on a row
        page.click("text=Next page")
        expect(page.locator("table.matrix tbody tr")).to_have_count(31)
        page.click("label:has-text('all that are found') input")
        page.click("label:has-text('Default') input[name=store]")
        page.click("text=Estimate…")
        expect(page.locator("h1")).to_have_text("Re-ingest 81 documents?")
        expect(page.locator(".facts")).to_contain_text("Legal")
        expect(page.locator(".facts")).not_to_contain_text("Default")
        expect(page.locator(".facts")).to_contain_text("1 of 81")
        person.looks("8-estimate")
        page.click("button:has-text('Start')")
        page.wait_for_url("**/jobs/*")
        page.evaluate(REMEMBER)
        expect(page.locator("button:has-text('Cancel')")).to_be_visible()
        person.looks("9-job-running")
        expect(page.locator(".headline .badge")).to_have_text("◐ Partial", timeout=120_000)
        for _ in range(100):  # what is remembered comes a moment after what is seen
            shown = page.evaluate("window.shown")  # lost if the page was loaded again
            if shown[-1].startswith("◐ Partial"):
                break
            page.wait_for_timeout(100)
        assert shown[0].endswith(" 0 of 81")
        assert any(text.startswith("◔ Running") for text in shown), shown
        assert shown[-1] == "◐ Partial 81 of 81"
        first = page.locator("#results tbody tr").first
        expect(first).to_contain_text("broken.md")
        expect(first).to_contain_text("Empty file.")
        expect(first).to_contain_text("Fill or remove it.")
        expect(page.locator("button:has-text('Cancel')")).to_be_hidden()
        person.looks("10-job-partial")
        broken.write_text("It has words by now.")
        page.click("button:has-text('Retry what is not done')")
        expect(page.locator(".headline .badge")).to_have_text("● Succeeded", timeout=120_000)
        expect(page.locator("#results tbody tr")).to_have_count(1)
        person.looks("11-job-succeeded")


def test_the_library_follows_what_a_terminal_does(project: Project, visit: Callable[..., Person]) -> None:
    """What a run in a terminal brings is shown by itself, but not while something is ticked; the focus stays."""
    with Visited(project) as served:
        person = visit(served, viewport={"width": 420, "height": 900})
        page = person.page
        expect(page.locator(".empty")).to_contain_text("ingest run")
        person.looks("12-empty-narrow")
        project.write("first.md", "Some words.")
        page.click("button:has-text('List the sources now')")
        expect(page.locator(".headline .badge")).to_have_text("● Succeeded", timeout=120_000)
        expect(page.locator("[aria-label='What the listing found']")).to_contain_text("New1")
        person.looks("12-listed-narrow")
        assert project.run("run").returncode == 0
        page.click("nav >> text=Library")
        expect(page.locator("table.matrix tbody tr")).to_have_count(1, timeout=30_000)
        page.reload()
        page.check("[data-tick-all]")
        expect(page.locator("tbody input[name=id]")).to_be_checked()
        project.write("second.md", "Some more words.")
        assert project.run("run").returncode == 0
        page.wait_for_timeout(6_000)
        expect(page.locator("tbody input[name=id]")).to_be_checked()
        page.uncheck("[data-tick-all]")
        first = page.locator("tbody th a", has_text="first")
        first.focus()
        expect(page.locator("table.matrix tbody tr")).to_have_count(2, timeout=30_000)
        expect(first).to_be_focused()
        person.looks("13-library-narrow")


def test_a_server_that_is_gone_is_told(project: Project, visit: Callable[..., Person]) -> None:
    """While the server does not answer the page says so, and that what it shows may be old."""
    with Visited(project) as served:
        person = visit(served)
        expect(person.page.locator("#trouble")).to_be_hidden()
        served.stop()
        expect(person.page.locator("#trouble")).to_contain_text("may be old", timeout=30_000)
    person.complaints.clear()  # of the browser, of the same


def test_a_stranger_signs_in(project: Project, visit: Callable[..., Person]) -> None:
    """Who has signed out types a token, which stands in no address."""
    with Visited(project) as served:
        person = visit(served)
        person.page.get_by_role("button", name="Sign out").click()
        expect(person.page.locator("[name=token]")).to_be_visible()
        person.page.goto(f"{served.url}/jobs")
        person.page.fill("[name=token]", served.token)
        person.page.keyboard.press("Enter")
        expect(person.page.locator("h1")).to_have_text("Library")
        assert person.page.url == f"{served.url}/"
    person.complaints.clear()  # of the browser, that one has to sign in


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_every_page_is_sound(project: Project, visit: Callable[..., Person], scheme: str, width: int) -> None:
    """In light and dark, wide and narrow, no page has a serious fault, nor one for the browser to complain about."""
    project.write("a <b>bold</b> \u202ename.md", "# Words\n\nSome words.")
    project.write(f"{'long' * 60}.md", f"# {'Long' * 300}\n\n{'words' * 1000}")
    project.write("broken.md", "")
    assert project.run("run").returncode == 1
    with Visited(project) as served:
        person = visit(served, color_scheme=scheme, viewport={"width": width, "height": 900})
        for name in ("", "jobs", "stores", "spend", "search?q=words"):
            person.page.goto(f"{served.url}/{name}")
            person.looks(f"14-{scheme}-{name.partition('?')[0] or 'library'}")
        for name in ("jobs", ""):
            person.page.goto(f"{served.url}/{name}")
            person.page.click("tbody th a")
            person.page.wait_for_load_state()
            person.looks(f"15-{scheme}-{'job' if name else 'document'}")
