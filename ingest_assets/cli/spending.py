"""`ingest spend` and `ingest cache`: what was paid, and the answers that were bought."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Annotated, Any

import typer

from ingest_assets.cli.finish import finish
from ingest_assets.cli.output import Exit, complain, print_json, print_table, say
from ingest_assets.components import Components
from ingest_assets.requests.asking import AskedWronglyError
from ingest_assets.settings import load_settings
from resources.artifact_store.paid_results.paid_result import KeptTotal, ResultSelection
from resources.artifact_store.paid_results.usage import Usage
from resources.clock import utc_now
from resources.counting import counted
from resources.document_state.spend_book import SpendTotals, in_dollars
from resources.document_state.spend_ledger import SpendReport, day_of

cache = typer.Typer(no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


@cache.callback()
def cache_() -> None:
    """Count or remove the answers of models that were paid for and are kept."""


def spend(
    days: Annotated[int, typer.Option("--days", help="How many days, today included.", min=1, max=36500)] = 30,
    as_json: AsJson = False,
) -> None:
    """Show what was spent by day, model and job, estimate against actual, and what is reserved now."""

    async def go(components: Components) -> int:
        report = await components.ledger.report(day_of(utc_now() - timedelta(days=days - 1)))
        if as_json:
            print_json(report)
        else:
            _print_report(report)
        return Exit.DONE

    _run(go)


@cache.command()
def stats(as_json: AsJson = False) -> None:
    """Count the answers that are kept, by organisation and model, and say what buying them again would cost."""

    async def go(components: Components) -> int:
        _print_kept(await components.journal.totals(ResultSelection()), as_json=as_json)
        return Exit.DONE

    _run(go)


@cache.command()
def prune(
    older_than: Annotated[
        int | None, typer.Option("--older-than", help="Only answers of more than so many days ago.", min=0, max=36500)
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Only answers of this model.")] = None,
    org: Annotated[str | None, typer.Option("--org", help="Only answers of this organisation.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, it is only said what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove answers by age, model or organisation; what is extracted stays, and extracting it again costs anew.

    What a batch under way has paid for is spared.
    """

    async def go(components: Components) -> int:
        if (older_than, model, org) == (None, None, None):
            raise AskedWronglyError("Say which answers: --older-than DAYS, --model or --org; --older-than 0 is all.")
        before = None if older_than is None else utc_now() - timedelta(days=older_than)
        selection = ResultSelection(before, model, org)
        if not yes:
            _print_kept(await components.journal.totals(selection), as_json=as_json)
            complain("Nothing was removed. The same command with --yes removes these.")
            return Exit.USAGE
        _print_kept(await components.journal.prune(selection), as_json=as_json)
        return Exit.DONE

    _run(go)


def _run(command: Callable[[Components], Coroutine[Any, Any, int]]) -> None:
    async def opened() -> int:
        async with Components(load_settings()) as components:
            return await command(components)

    finish(lambda: asyncio.run(opened()))


def _print_report(report: SpendReport) -> None:
    if not report.days and not report.open:
        say("Nothing was spent.")
        return
    numbers = ["#calls", "#tokens in", "#tokens out", "#spent", "#of it assumed", "#estimated"]
    by_day = [[day, model, *_cells(totals)] for day, models in report.days.items() for model, totals in models.items()]
    print_table(["day", "model", *numbers], by_day)
    by_job = [
        [job_id, model, *_cells(totals)] for job_id, job in report.jobs.items() for model, totals in job.models.items()
    ]
    print_table(["job", "model", *numbers], by_job)
    held = sum(each.reservation.micro_usd for each in report.open)
    say(f"Reserved by {len(report.open)} batches under way: {in_dollars(held)}.")


def _cells(totals: SpendTotals) -> list[str]:
    money = (totals.micro_usd, totals.assumed_micro_usd, totals.estimated_micro_usd)
    counts = (totals.calls, totals.input_tokens, totals.output_tokens)
    return [*(f"{count:,}" for count in counts), *(in_dollars(amount) for amount in money)]


def _print_kept(kept: Sequence[KeptTotal], *, as_json: bool) -> None:
    if as_json:
        print_json(kept)
        return
    rows = [[each.org_id, each.model, f"{each.n_results:,}", f"{each.n_bytes:,}", *_used(each.usage)] for each in kept]
    columns = ["organisation", "model", "#answers", "#bytes", "#tokens in", "#tokens out", "#again would cost"]
    print_table(columns, rows)
    n = sum(each.n_results for each in kept)
    say(f"{counted(n, 'answer')}, {in_dollars(sum(each.usage.micro_usd for each in kept))}.")


def _used(usage: Usage) -> list[str]:
    return [f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", in_dollars(usage.micro_usd)]
