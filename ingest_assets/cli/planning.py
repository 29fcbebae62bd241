"""`ingest plan`: what would be done, how much it is, and what it would cost; and the marks of what is stale."""

from collections.abc import Sequence

import msgspec

from ingest_assets.cli.inspect import unless_configured
from ingest_assets.cli.output import Exit, complain, print_json, print_table, say
from ingest_assets.cli.watching import counter, progress
from ingest_assets.components import Components
from ingest_assets.requests.asking import Asked
from ingest_assets.requests.costing import SpendEstimate, estimate_spending
from ingest_assets.requests.forecast import Forecast, forecast, forecast_asked
from ingest_assets.requests.sampling import EstimateReply, SampleWanted, estimate_sample
from ingest_assets.upkeep.marking import Marked, mark
from ingest_assets.upkeep.settling import doubts
from resources.counting import counted
from resources.document_state.spend_book import in_dollars
from resources.document_state.take_up import Action, Mode
from resources.extractor.extractor import ExtractorConfigError

_SHOWN = 100


async def apply_plan(components: Components, *, as_json: bool) -> int:
    """See `ingest plan --apply`."""
    await components.register_stores()
    with counter("Marking", quiet=as_json) as advance:
        marked = await mark(components.state, await components.configured(), advance)
    if as_json:
        print_json(marked)
        return Exit.DONE
    for slug, n in sorted(marked.stores.items()):
        say(f"Now marked stale in store '{slug}': {counted(n)}. `ingest run --store {slug} --stale` renews them.")
    for slug, n in sorted(marked.unconfigured.items()):
        say(f"What store '{slug}' holds no longer counts, since it is not in ingest.toml: {counted(n)}.")
    if marked.n_current:
        say(f"Stale no longer, since the configuration is what it was: {counted(marked.n_current)}.")
    if marked.n_busy:
        say(f"Being worked on: {counted(marked.n_busy)}. The next `ingest plan --apply` looks at them.")
    if marked == Marked():
        say("Every mark is as the configuration says.")
    return Exit.DONE


async def plan(
    components: Components, paths: Sequence[str], mode: Mode, asked: Asked | None, *, estimate: bool, as_json: bool
) -> int:
    """See `ingest plan`."""
    if asked is not None:
        for slug in asked.stores:
            await components.target(slug)
        planned = await forecast_asked(components, paths, asked)
    else:
        with progress(quiet=as_json) as watcher:
            watcher.does("Listing the sources")
            planned = await forecast(components, paths, mode)
    planned = msgspec.structs.replace(planned, doubts=tuple(await doubts(components)))
    if estimate:
        to_extract = [(p.document_id, p.source_uri) for p in planned.documents if p.action is Action.EXTRACT]
        with counter("Reading and parsing", quiet=as_json) as advance:
            renews = asked is not None and asked.kind.renews_extraction
            spending = await estimate_spending(components, to_extract, advance, renews=renews)
        planned = msgspec.structs.replace(planned, spending=spending)
    if as_json:
        print_json(planned)
    else:
        _print(planned)
        if planned.source_errors and (hint := unless_configured(components.settings)):
            complain(hint.strip())
    return Exit.FAILED if planned.source_errors else Exit.DONE


async def reply_to_server(components: Components, asked: bytes) -> int:
    """See `ingest estimate-sample`: a SampleWanted in JSON, answered by an EstimateReply."""
    wanted = msgspec.json.decode(asked, type=SampleWanted)
    try:
        reply = EstimateReply(await estimate_sample(components, wanted))
    except ExtractorConfigError as error:
        reply = EstimateReply(refusal=str(error))
    print_json(reply)
    return Exit.DONE


def _print(planned: Forecast) -> None:
    for said in (*planned.source_errors, *planned.overlaps):
        complain(str(said))
    rows = [(p.filename, p.action, p.why) for p in planned.documents[:_SHOWN]]
    if planned.spending is not None:
        _print_with_costs(planned, planned.spending)
    elif rows:
        print_table(["document", "action", "why"], rows)
    rest = len(planned.documents) - len(rows)
    if rest > 0:
        say(f"… and {rest} more: --json lists all.")
    for slug in planned.begun_anew:
        say(f"Store '{slug}' holds vectors of another embedder: it would be emptied first, and built as a whole.")
    if planned.n_chunks is None:
        say(f"{counted(len(planned.documents))} would be worked on; unchanged: {planned.n_unchanged:,}.")
    else:
        say(
            f"{counted(len(planned.documents))} would be worked on, {planned.n_to_extract} of them extracted; "
            f"at most {counted(planned.n_chunks, 'chunk')} embedded."
        )
    if planned.left_out.n:
        say(str(planned.left_out))
    for doubt in planned.doubts:
        complain(doubt)
    if planned.spending is not None:
        _print_total(planned.spending)


def _print_with_costs(planned: Forecast, spending: SpendEstimate) -> None:
    costs = {cost.document_id: cost for cost in spending.documents}
    rows = []
    for document in planned.documents[:_SHOWN]:
        cost = costs.get(document.document_id)
        cells = ("", "", "", "")
        if cost is not None and cost.reason is not None:
            cells = ("", "", "", f"{cost.reason}: {cost.error}")
        elif cost is not None:
            cells = (str(cost.n_calls), in_dollars(cost.worst_micro_usd), _expected(cost.expected_micro_usd), "")
        rows.append((document.filename, document.action, document.why, *cells))
    if rows:
        print_table(["document", "action", "why", "#calls", "#at most", "#expected", "cannot be extracted"], rows)


def _print_total(spending: SpendEstimate) -> None:
    say(
        f"{spending.n_calls:,} calls to a model; they cost at most {in_dollars(spending.worst_micro_usd)}, "
        f"expected {_expected(spending.expected_micro_usd)}. Chunks whose answers are kept and cost nothing: "
        f"{spending.n_answered:,}."
    )
    left = spending.left_micro_usd
    if left is None:
        say("No ceiling of [spend] holds a new job.")
    elif left < spending.worst_micro_usd:
        say(f"The ceilings of [spend] leave a new job {in_dollars(left)}: it does batches until one may not fit.")
    else:
        say(f"The ceilings of [spend] leave a new job {in_dollars(left)}.")


def _expected(micro_usd: int | None) -> str:
    return "unknown" if micro_usd is None else in_dollars(micro_usd)
