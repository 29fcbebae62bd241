"""The commands about the state store itself: create, copy, import-checkpoint."""

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ingest_assets.cli.finish import finish
from ingest_assets.cli.inspect import candidate_ids
from ingest_assets.cli.opened import with_open_components
from ingest_assets.cli.output import Exit, complain, print_json, print_table, say
from ingest_assets.cli.watching import counter
from ingest_assets.components import Components
from ingest_assets.discovering import discovery_of
from ingest_assets.requests.request import LazyPartitions
from ingest_assets.settings import Settings, load_settings
from ingest_assets.upkeep.checkpoint_import import Candidate, Imported, import_checkpoint, read_checkpoint, read_nodes
from resources.clock import utc_now
from resources.document_source.document_source import SourceError
from resources.records.copying import KindCopied, copy_records
from resources.records.uri import open_backend

_SHOWN = 20

app = typer.Typer(no_args_is_help=True, help="Make, copy or fill the state store.")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Uri = Annotated[str, typer.Argument(help="A state store's URI, as in document_state_store.")]


@app.command()
def create(
    uri: Annotated[str, typer.Argument(help="Default: the one ingest.toml names.", show_default=False)] = "",
    shards: Annotated[
        int | None, typer.Option(help="s3: how many objects a kind of records is spread over.", min=1, max=256)
    ] = None,
) -> None:
    """Make the state store: a file, a layout in a bucket, a table. Safe to repeat."""

    async def go() -> int:
        settings = load_settings()
        backend = open_backend(uri or settings.state_uri, settings.base)
        try:
            await backend.create(shards=shards)
        finally:
            await backend.close()
        say(f"State store {backend.uri} is ready.")
        return Exit.DONE

    finish(lambda: asyncio.run(go()))


@app.command(name="copy")
def copy_(
    source: Uri,
    target: Uri,
    into_existing: Annotated[
        bool, typer.Option("--into-existing", help="The target may hold records; those of the same name are replaced.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Copy every record to another state store and prove both equal. Interrupted, the same command goes on."""

    async def go() -> int:
        settings = load_settings()
        backends = [open_backend(uri, settings.base) for uri in (source, target)]
        try:
            with counter("Copying", quiet=as_json) as advance:
                copied = await copy_records(*backends, into_existing=into_existing, progress=advance)
        finally:
            for backend in backends:
                await backend.close()
        _print_copied(copied, backends[1].uri, as_json=as_json)
        return Exit.DONE

    finish(lambda: asyncio.run(go()))


@app.command(name="import-checkpoint")
def import_checkpoint_(
    folder: Annotated[Path, typer.Argument(help="A checkpoint's folder, or the one with `save_points` in it.")],
    nodes: Annotated[Path, typer.Option("--nodes", help="JSON or JSON Lines: which nodes belong to which document.")],
    name: Annotated[str, typer.Option("--name", help="Which of several checkpoints.")] = "",
    as_json: AsJson = False,
) -> None:
    """Let documents that another tool has extracted, by its savepoints, count as extracted."""

    async def go(components: Components) -> int:
        checkpoint = read_checkpoint(folder, name)
        listed = read_nodes(nodes)
        errors = await _discover(components.settings, components)
        sources = list((await components.sources()).values())
        documents = {item.document: Candidate(candidate_ids(sources, item.document), item.nodes) for item in listed}
        result = await import_checkpoint(components.state, checkpoint, documents)
        _print_imported(result, errors, as_json=as_json)
        return Exit.FAILED if errors or result.unknown or result.busy else Exit.DONE

    finish(with_open_components(go))


async def _discover(settings: Settings, components: Components) -> list[str]:
    """List every source, so that each document has a record and is a partition; gives what could not be listed."""
    from ingest_assets.runs.dagster_instance import open_instance

    partitions = LazyPartitions(lambda: open_instance(settings))
    errors = []
    for source in (await components.sources()).values():
        try:
            await discovery_of(components, source).run(partitions, utc_now)
        except SourceError as error:
            errors.append(str(error))
    return errors


def _print_copied(copied: list[KindCopied], target: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"target": target, "kinds": copied})
        return
    rows = [(kind.kind, kind.n_records, kind.n_written, kind.sha256[:16]) for kind in copied]
    print_table(["kind", "#records", "#written", "sha256"], rows)
    total = sum(kind.n_records for kind in copied)
    say(f"\n{target} holds the same {total:,} records. Name it in ingest.toml to use it.")


def _print_imported(result: Imported, errors: list[str], *, as_json: bool) -> None:
    found = msgspec.structs.asdict(result)
    if as_json:
        print_json({**found, "source_errors": errors})
        return
    for error in errors:
        complain(error)
    print_table(["documents", "#number"], [(what, len(names)) for what, names in found.items()])
    for name in result.unknown[:_SHOWN]:
        complain(f"No source lists '{name}'. Name it by its key in a source, its path, or its id.")
    if len(result.unknown) > _SHOWN:
        complain(f"… and {len(result.unknown) - _SHOWN} more: --json lists all.")
