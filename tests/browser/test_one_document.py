"""One document in a real browser: why it is stale, a correction, and one store brought up to it."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Person, Visited
from tests.end_to_end.project import Project

pytestmark = pytest.mark.browser
TEXT = "# Warranty\n\nThe warranty covers five years.\n\n" + "\n\n".join(
    f"## Part {number}\n\n" + f"Part {number} of the engine is looked at every {number} months. " * 40
    for number in range(2, 6)
)


def _stale_in_one_store(project: Project) -> None:
    """A document that is Ingested in `default` and, by a correction, Stale in `legal`."""
    path = project.write("warranty.md", TEXT)
    assert project.run("run").returncode == 0
    lines = project.run("chunks", "show", str(path), "--jsonl").stdout.splitlines()
    chunk = json.loads(lines[0])
    edit = project.root / "edit.jsonl"
    edit.write_text(json.dumps({"chunk_id": chunk["chunk_id"], "text": chunk["text"].replace("five", "six")}))
    assert project.run("chunks", "edit", str(path), "--file", str(edit), "--by", "Maria").returncode == 0
    assert project.run("run", "--store", "default", "--stale").returncode == 0


def test_from_the_library_to_a_corrected_chunk_in_one_store(project: Project, visit: Callable[..., Person]) -> None:
    """See why one store is stale, correct a chunk, bring one store up to it and see it: at most five clicks."""
    _stale_in_one_store(project)
    with Visited(project) as served:
        person = visit(served)
        page = person.page
        row = page.locator("table.matrix tbody tr")
        expect(row.locator(".badge")).to_have_text(["● Completed", "● Ingested", "◐ Stale"])
        person.looks("1-library")
        person.click("table.matrix tbody th a")
        default, legal = page.locator("#in-default"), page.locator("#in-legal")
        expect(default.locator(".badge")).to_have_text("● Ingested")
        expect(legal.locator(".badge")).to_have_text("◐ Stale")
        expect(legal).to_contain_text("Chunks corrected by Maria")
        expect(legal).to_contain_text("→")
        person.looks("2-why-stale")
        person.click("#c-2 summary:has-text('Correct')")
        page.fill("#text-2", "Part 2 of the engine is looked at every week.")
        page.fill("#note-2", "as the manual says")
        person.looks("3-correcting")
        person.click("#c-2 button:has-text('Save the correction')")
        expect(page.locator("#c-2 .chunk > .words")).to_have_text("Part 2 of the engine is looked at every week.")
        expect(page.locator("#c-2")).to_contain_text("Corrected by owner")
        expect(default.locator(".badge")).to_have_text("◐ Stale")
        person.click(".actions button:has-text('Default')")
        page.evaluate("window.isStillThisPage = true")
        expect(default.locator(".badge")).to_have_text("● Ingested", timeout=120_000)
        expect(legal.locator(".badge")).to_have_text("◐ Stale")
        assert page.evaluate("window.isStillThisPage"), "the page was loaded again"
        expect(page.locator("#said")).to_contain_text("Default current, Legal stale")
        person.looks("4-ingested-in-one")
        assert person.clicks <= 5
        correction = "Part 2 of the engine is looked at every week."
        [found] = project.json("search", correction, "--store", "default", "-k", "1")
        assert found["text"] == correction


def test_the_second_of_two_who_correct_a_chunk_loses_nothing(project: Project, visit: Callable[..., Person]) -> None:
    """Who saves after somebody else was told so, sees the other's text and his own, and can save both together."""
    project.write("warranty.md", TEXT)
    assert project.run("run").returncode == 0
    with Visited(project) as served:
        first, second = visit(served), visit(served)
        for person in (first, second):
            person.click("table.matrix tbody th a")
            person.click("#c-1 summary:has-text('Correct')")
        first.page.fill("#text-1", "The warranty covers six years.")
        first.click("#c-1 button:has-text('Save the correction')")
        expect(first.page.locator("#c-1")).to_contain_text("Corrected by owner")
        expect(second.page.locator("#standing")).to_contain_text("have changed since this page was loaded")
        second.page.fill("#text-1", "The warranty covers five years, abroad too.")
        with second.page.expect_response(lambda answer: answer.request.method == "POST") as answered:
            second.click("#c-1 button:has-text('Save the correction')")
        assert answered.value.status == 412
        expect(second.page.locator("#conflict")).to_contain_text("was changed by owner")
        expect(second.page.locator("#c-1 .chunk > .words")).to_have_text("The warranty covers six years.")
        expect(second.page.locator("#text-1")).to_have_value("The warranty covers five years, abroad too.")
        second.looks("5-somebody-was-first")
        second.page.fill("#text-1", "The warranty covers six years, abroad too.")
        second.click("#c-1 button:has-text('Save the correction')")
        expect(second.page.locator("#c-1 .chunk > .words")).to_have_text("The warranty covers six years, abroad too.")
        assert [complaint for complaint in second.complaints if "412" not in complaint] == []
        second.complaints.clear()


def test_a_hit_leads_to_its_place(project: Project, visit: Callable[..., Person]) -> None:
    """From a search to the document, with the chunk that was found highlighted beside its text; by keyboard alone."""
    project.write("warranty.md", TEXT)
    assert project.run("run").returncode == 0
    with Visited(project) as served:
        person = visit(served, color_scheme="dark")
        page = person.page
        page.goto(f"{served.url}/search")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(page.locator("[name=q]")).to_be_focused()
        page.keyboard.type("part 4 looked at every 4 months")
        page.keyboard.press("Enter")
        expect(page.locator(".hits li")).not_to_have_count(0)
        person.looks("6-search-dark")
        words = page.locator(".hits li .words").first.inner_text()
        page.locator(".hits li a").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/documents/*#c-*")
        highlighted = page.locator(".passage:target")
        expect(highlighted.locator(".chunk > .words")).to_contain_text(words[:80])
        expect(highlighted).to_be_in_viewport()
        person.looks("7-document-dark")
        page.click("[data-theme-toggle]")
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
