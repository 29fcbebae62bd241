"""The commands about stores themselves: drop."""

import asyncio
from typing import Annotated

import typer

from ingest_assets.cli.finish import finish
from ingest_assets.cli.output import Exit, complain, counter, print_json, say
from ingest_assets.components import Components
from ingest_assets.settings import load_settings
from ingest_assets.upkeep.dropping import drop_store, linked_documents

app = typer.Typer(no_args_is_help=True, help="Drop a store's data.")


@app.callback()
def stores() -> None:
    """Drop a store's data."""


@app.command()
def drop(
    store: Annotated[str, typer.Argument(help="Which store.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, it is only said what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of sentences.")] = False,
) -> None:
    """Remove all of a store's data, so that it can begin anew; documents, artifacts and other stores stay.

    Exit code: 0 dropped, 1 documents are being worked on, so it was not, 2 not confirmed, or no such store.
    """

    async def go() -> int:
        async with Components(load_settings()) as components:
            target = components.target(store).store
            if not yes:
                n = len(await linked_documents(components.state, store))
                complain(
                    f"Store '{store}' holds {n:,} documents. Nothing was dropped: `ingest stores drop {store} --yes`."
                )
                return Exit.USAGE
            with counter("Forgetting", quiet=as_json) as advance:
                dropped = await drop_store(components.state, target, advance)
        if as_json:
            print_json(dropped)
        elif dropped.n_busy:
            complain(f"{dropped.n_busy:,} documents are being worked on. Let the runs end, then drop the store again.")
        else:
            say(f"Store '{store}' is empty; {dropped.n_documents:,} documents were in it.")
            say(f"`ingest run --store {store} --missing` builds them again.")
        return Exit.FAILED if dropped.n_busy else Exit.DONE

    finish(lambda: asyncio.run(go()))
