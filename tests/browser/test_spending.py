"""A job that a spending limit holds back, in a real browser."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Person, Visited
from tests.end_to_end.project import Project
from tests.servers.fixtures import ENVIRONMENT
from tests.servers.model_server import ModelServer

pytestmark = pytest.mark.browser
MODEL = "openai:gpt-4o-mini"
CONFIG = f"""
extractor = "{MODEL}"
default_embedder = "hash"
[[sources]]
name = "docs"
uri = "docs"
[prices."{MODEL}"]
input = 100
output = 400
[spend]
per_day_usd = """


def test_a_blocked_job_goes_on_when_the_ceiling_is_raised(
    tmp_path: Path, model: ModelServer, visit: Callable[..., Person]
) -> None:
    """The page says what held the job back and what to do; under a higher ceiling the retry finishes."""
    project = Project(tmp_path, CONFIG + "0.01")
    project.environment = {**ENVIRONMENT, **model.environment()}
    for number in range(3):
        project.write(f"{number}.md", f"Grace Hopper wrote compiler number {number}. Ada Lovelace wrote notes.\n")
    assert project.run("run").returncode == 3
    with Visited(project) as served:
        person = visit(served)
        page = person.page
        page.check("[data-tick-all]")
        page.click("text=Estimate…")
        expect(page.locator(".facts")).to_contain_text("3 of 3")
        expect(page.locator(".facts")).to_contain_text("at most $")
        expect(page.locator(".facts")).to_contain_text("all of the documents were read and parsed")
        expect(page.locator(".facts")).to_contain_text("$0.01 for a new job")
        expect(page.locator(".facts")).to_contain_text("held back, unpaid")
        person.looks("16-estimate-in-dollars")
        page.click("button:has-text('Start')")
        page.wait_for_url("**/jobs/*")
        expect(page.locator(".headline .badge")).to_have_text("■ Blocked", timeout=120_000)
        expect(page.locator("main .notice")).to_contain_text("spend.per_day_usd = $0.01")
        expect(page.locator("main .notice")).to_contain_text("Raise the ceiling in ingest.toml")
        person.looks("16-blocked")
        assert not model.calls
        project.configure(CONFIG + "100")
        page.click("button:has-text('Retry what is not done')")
        expect(page.locator(".headline .badge")).to_have_text("● Succeeded", timeout=120_000)
        expect(page.locator(".facts")).to_contain_text("spent $")
        person.looks("17-paid")
        page.click("nav >> text=Spend")
        expect(page.locator(".facts")).to_contain_text("$100.00")
        expect(page.locator("table").first).to_contain_text(MODEL)
        person.looks("18-spend")
        page.click("nav >> text=Library")
        page.click("tbody th a")
        expect(page.locator(".facts")).to_contain_text("Cost so far")
        page.click("summary:has-text('Delete')")
        page.click("text=Delete it from every store")
        expect(page.locator(".facts .badge")).to_have_text("◇ Gone", timeout=120_000)
        person.looks("19-deleted")
        page.click("nav >> text=Library")
        expect(page.locator("table.matrix tbody tr")).to_have_count(2, timeout=120_000)
        page.check("text=deleted by a person")
        page.click("button:has-text('Show')")
        expect(page.locator("table.matrix tbody tr")).to_have_count(1)
        person.looks("20-deleted-in-the-library")
        page.click("tbody th a")
        person.looks("21-may-be-restored")
        page.click("button:has-text('Restore it')")
        expect(page.locator("#in-default .badge")).to_have_text("● Ingested", timeout=120_000)
