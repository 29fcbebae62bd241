"""The commands about stores themselves: list, drop."""

from typing import Annotated

import typer

from ingest_assets.cli.finish import finish
from ingest_assets.cli.opened import with_open_components
from ingest_assets.cli.output import Exit, complain, print_json, print_table, say, shown_time
from ingest_assets.cli.watching import counter
from ingest_assets.components import Components, UnknownNameError
from ingest_assets.targets import open_recorded, renamed_to
from ingest_assets.upkeep.dropping import drop_store, linked_documents
from ingest_assets.upkeep.store_listing import ListedStore, list_stores
from resources.counting import counted
from resources.document_state.link_counts import last_pushes
from resources.document_state.model import LinkState
from resources.store.store import Store

app = typer.Typer(no_args_is_help=True, help="List the stores, or drop a store's data.")


@app.callback()
def stores() -> None:
    """List the stores, or drop a store's data."""


@app.command(name="list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")] = False,
) -> None:
    """List every store with its embedder and its documents by state, also those that are configured no more."""

    async def go(components: Components) -> int:
        listed = await list_stores(components, await last_pushes(components.state))
        if as_json:
            print_json(listed)
            return Exit.DONE
        states = [state.value for state in LinkState]
        about = ["store", "name", "kind", "embedder", "created (UTC)", "last push (UTC)", ""]
        columns = [*about, *(f"#{state}" for state in states)]
        print_table(columns, [[*_about(store), *(store.links[state] for state in states)] for store in listed])
        return Exit.DONE

    finish(with_open_components(go))


@app.command()
def drop(
    store: Annotated[str, typer.Argument(help="Which store.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, it is only said what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of sentences.")] = False,
) -> None:
    """Remove all of a store's data, so that it can begin anew; documents, artifacts and other stores stay.

    A store that is no longer in ingest.toml is found by its record, which goes with the data.

    Exit code: 0 dropped, 1 documents are being worked on, so it was not, 2 not confirmed, or no such store.
    """

    async def go(components: Components) -> int:
        target = await _store(components, store)
        is_configured = store in await components.targets()
        record = (await components.store_registry.all()).get(store)
        heir = "" if is_configured or record is None else renamed_to(components.settings, record)
        if not yes:
            n = len(await linked_documents(components.state, store))
            complain(f"Store '{store}' holds {counted(n)}. Nothing was dropped: `ingest stores drop {store} --yes`.")
            return Exit.USAGE
        with counter("Forgetting", quiet=as_json) as advance:
            dropped = await drop_store(components.state, store, (lambda: None) if heir else target.drop, advance)
        if not is_configured and not dropped.n_busy:
            await components.store_registry.forget(store)
        if as_json:
            print_json(dropped)
        elif dropped.n_busy:
            complain(f"Being worked on: {counted(dropped.n_busy)}. Let the runs end, then drop the store again.")
        elif heir:
            say(f"Store '{store}' is forgotten: {counted(dropped.n_documents)}. Its file is left to store '{heir}'.")
        else:
            say(f"Store '{store}' is empty; it held {counted(dropped.n_documents)}.")
            say(
                f"`ingest run --store {store} --missing` builds them again."
                if is_configured
                else "It is not in ingest.toml, so its record is gone too."
            )
        return Exit.FAILED if dropped.n_busy else Exit.DONE

    finish(with_open_components(go))


async def _store(components: Components, slug: str) -> Store:
    """A store that is configured, or was.

    Raises:
        UnknownNameError: there is none, or its record does not say where its data is.
    """
    targets, records = await components.targets(), await components.store_registry.all()
    if slug in targets:
        return targets[slug].store
    if slug not in records:
        known = ", ".join(sorted(targets.keys() | records.keys()))
        raise UnknownNameError(f"Unknown store '{slug}'. Known: {known}.")
    opened = open_recorded(components.settings, records[slug])
    if opened is None:
        raise UnknownNameError(
            f"Store '{slug}' is not in ingest.toml any more, and options of the kind '{records[slug].kind}' are not "
            "recorded, since they may hold a secret. Put its [[stores]] table back, drop it, and take the table out."
        )
    return opened


def _about(store: ListedStore) -> list[str]:
    wanted = store.configured_embedder
    embedder = store.embedder if wanted in ("", store.embedder) else f"{store.embedder}, {wanted} is configured"
    created = shown_time(store.created_at) or "not yet"
    standings = {
        "default": store.is_default,
        "not in ingest.toml": not store.configured,
        "to be compared by the next run": store.doubtful,
    }
    standing = ", ".join(said for said, is_so in standings.items() if is_so)
    return [store.slug, store.name, store.kind, embedder, created, shown_time(store.last_push_at), standing]
