"""`ingest`: its commands."""

import asyncio
import signal
import sys
from typing import Annotated

import typer

from ingest_assets.cli import (
    chunks,
    deleting,
    explain,
    following,
    garbage,
    inspect,
    serve,
    spending,
    state,
    stores,
    work,
)
from ingest_assets.cli import jobs as listing
from ingest_assets.cli import verify as verifying
from ingest_assets.cli.finish import finish
from ingest_assets.cli.opened import with_components, with_open_components
from ingest_assets.cli.output import Exit
from ingest_assets.components import Components
from ingest_assets.requests.asking import Asked, AskedWronglyError, asked_for
from ingest_assets.requests.scope import NoSuchPathError
from ingest_assets.settings import load_settings
from resources.document_state.take_up import Mode

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(state.app, name="state")
app.add_typer(stores.app, name="stores")
app.add_typer(chunks.app, name="chunks")
app.add_typer(spending.cache, name="cache")
app.add_typer(serve.tokens, name="tokens")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Paths = Annotated[
    list[str] | None, typer.Argument(help="Only these files or folders, or s3://bucket/key.", show_default=False)
]
Documents = Annotated[list[str], typer.Argument(help="Document ids, or paths of files or s3://bucket/key in a source.")]
Document = Annotated[str, typer.Argument(help="A document id, or the path of a file or s3://bucket/key in a source.")]
InStore = Annotated[str, typer.Option("--store", help="With the next four: only in this store.")]
IsStale = Annotated[bool, typer.Option("--stale", help="What was made with another configuration, anew.")]
HasFailed = Annotated[bool, typer.Option("--failed", help="Failed documents only, whatever the reason was.")]
IsMissing = Annotated[bool, typer.Option("--missing", help="What is not in a store that was added later.")]
WithFacets = Annotated[
    str, typer.Option("--where", help="Only documents with these facets: 'source=… reason=… status=… state=…'.")
]


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("ingest-assets"))
        raise typer.Exit


@app.callback()
def ingest(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Turns piles of documents into searchable indexes, and knows the truth about every document."""


@app.command()
def run(
    paths: Paths = None,
    mode: Annotated[Mode, typer.Option(help="What to take up.")] = Mode.INCREMENTAL,
    store: InStore = "",
    stale: IsStale = False,
    failed: HasFailed = False,
    missing: IsMissing = False,
    where: WithFacets = "",
    accept_vanished: Annotated[
        bool, typer.Option("--accept-vanished", help="Believe a listing that lost a large share of its documents.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Do every document again, and write the stores anew.")] = False,
    continued: Annotated[
        str, typer.Option("--continue", metavar="JOB", help="Do what this interrupted job of --force had not done.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """List the sources, then extract and build what is new, changed or due.

    With --stale, --failed, --missing or --where: just these of the documents that are known; no source is listed.
    """

    def go(components: Components) -> int:
        asked, chosen = _asked(store, mode, stale=stale, failed=failed, missing=missing, where=where)
        named = _paths(paths)
        if continued:
            if named or asked or force or accept_vanished or chosen is not Mode.INCREMENTAL:
                raise AskedWronglyError(
                    "--continue does what a job had not done, so it goes with no path and no choice."
                )
            return work.go_on(components, continued, as_json=as_json)
        if asked is not None:
            if force or accept_vanished:
                raise AskedWronglyError("--force and --accept-vanished are for runs that list the sources.")
            return work.ask(components, named, chosen, asked, as_json=as_json)
        if force and chosen is Mode.RETRY_FAILED:
            raise AskedWronglyError("--force does every document again, not failed ones alone: leave one of them out.")
        return work.run(components, named, chosen, accept_vanished=accept_vanished, force=force, as_json=as_json)

    finish(with_components(go))


@app.command()
def plan(
    paths: Paths = None,
    mode: Annotated[Mode, typer.Option(help="What would be taken up.")] = Mode.INCREMENTAL,
    store: InStore = "",
    stale: IsStale = False,
    failed: HasFailed = False,
    missing: IsMissing = False,
    where: WithFacets = "",
    apply: Annotated[
        bool, typer.Option("--apply", help="Mark what the configuration has made stale; all documents, no work.")
    ] = False,
    estimate: Annotated[
        bool, typer.Option(help="With a paid extractor, read and parse the documents to say what they would cost.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Say what `ingest run` with the same options would do to which document and why; change nothing."""

    async def go(components: Components) -> int:
        from ingest_assets.cli import planning

        asked, chosen = _asked(store, mode, stale=stale, failed=failed, missing=missing, where=where)
        if apply:
            if asked is not None or paths:
                raise AskedWronglyError("--apply marks all documents, so it goes with no path and no choice.")
            return await planning.apply_plan(components, as_json=as_json)
        return await planning.plan(components, _paths(paths), chosen, asked, estimate=estimate, as_json=as_json)

    finish(with_open_components(go))


@app.command()
def retry(documents: Documents, as_json: AsJson = False) -> None:
    """Try failed or skipped documents again, whatever the reason was."""
    finish(with_components(lambda parts: work.retry(parts, documents, as_json)))


@app.command()
def delete(
    documents: Documents,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, it is only said what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove documents from every store, with everything that was made of them, and keep them away.

    Exit code: 0 all of it is gone, 1 something is left, and it says where, 2 not confirmed, or no such document.
    """
    finish(with_components(lambda parts: deleting.delete(parts, documents, yes=yes, as_json=as_json)))


@app.command()
def restore(documents: Documents, as_json: AsJson = False) -> None:
    """Bring back documents that were deleted: they are read from their source again."""
    finish(with_components(lambda parts: deleting.restore(parts, documents, as_json=as_json)))


@app.command()
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what nobody refers to now.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for workers that may need something yet.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove artifacts that no document refers to, and what is kept of jobs that ended long ago.

    Exit code: 0 done, 1 workers have to finish first, or it was refused; no artifact was removed then.
    """
    finish(with_open_components(lambda parts: garbage.gc(parts, dry_run=dry_run, wait=wait, as_json=as_json)))


@app.command()
def forget(source: Annotated[str, typer.Argument(help="A folder's name as a source.")]) -> None:
    """Forget a folder that became a source by being named; its documents stay as they are."""
    finish(with_open_components(lambda parts: work.forget(parts, source)))


@app.command()
def status(as_json: AsJson = False) -> None:
    """Count the documents by status and reason, and the stores' documents by state."""
    finish(with_open_components(lambda parts: inspect.status(parts, as_json)))


@app.command()
def show(
    document: Document,
    as_json: AsJson = False,
) -> None:
    """Show the whole record of a document."""
    finish(with_open_components(lambda parts: inspect.show(parts, document, as_json)))


@app.command()
def why(
    document: Document,
    store: Annotated[str, typer.Option("--store", help="Only this store.")] = "",
    as_json: AsJson = False,
) -> None:
    """Say why a document is stale, failed, pending or up to date: what differs, from what to what, and what to do.

    Exit code: 0 everything is current, 1 something differs, 2 no such document or store.
    """
    finish(with_open_components(lambda parts: explain.why(parts, document, store, as_json)))


@app.command()
def verify(
    documents: Annotated[
        list[str] | None, typer.Argument(help="Only these: ids, or paths in a source.", show_default=False)
    ] = None,
    store: Annotated[str, typer.Option("--store", help="Look at this store only.")] = "",
    repair: Annotated[bool, typer.Option("--repair", help="Mend what differs, without extracting anything.")] = False,
    re_extract: Annotated[
        bool, typer.Option("--re-extract", help="With --repair: extract again what was lost, which may cost.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare records, artifacts, links, Dagster's partitions and every row of the stores.

    Exit code: 0 nothing differs any more, 1 something does, 2 no such document or store.
    """
    finish(
        lambda: verifying.verify(
            Components(load_settings()),
            _paths(documents),
            store,
            repair=repair,
            re_extract=re_extract,
            as_json=as_json,
        )
    )


@app.command()
def jobs(
    job_id: Annotated[str | None, typer.Argument(help="One job, with its documents.", show_default=False)] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Show how the job goes on until it has ended.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the newest jobs, or show one with what became of each document."""

    async def show(parts: Components) -> int:
        if not follow:
            return await listing.jobs(parts, job_id, as_json)
        if job_id is None:
            raise AskedWronglyError("--follow needs the id of a job. `ingest jobs` lists them.")
        return await following.follow(parts, job_id, as_json)

    finish(with_open_components(show))


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for, in words.")],
    store: Annotated[str, typer.Option("--store", help="Which store.")] = "",
    k: Annotated[int, typer.Option("-k", help="How many hits.", min=1, max=1000)] = 5,
    document: Annotated[str, typer.Option("--document", help="Only in this document.")] = "",
    source: Annotated[str, typer.Option("--source", help="Only in this source.")] = "",
    as_json: AsJson = False,
) -> None:
    """Find the chunks nearest to a query, in meaning and words."""
    finish(with_open_components(lambda parts: inspect.search(parts, query, store, k, document, source, as_json)))


app.command()(spending.spend)
app.command()(serve.serve)


@app.command(name="run-job", hidden=True)
def run_job(job_id: Annotated[str, typer.Argument(help="A job that was accepted.")]) -> None:
    """Do a job that the HTTP API accepted; its server starts this, in a process and session of its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who started the server may have had it ignored
    finish(lambda: work.carry_out(Components(load_settings()), job_id))


@app.command(name="estimate-sample", hidden=True)
def estimate_sample() -> None:
    """Say what extracting the documents that stdin names would cost; the server of the page starts this."""

    async def go(components: Components) -> int:
        from ingest_assets.cli import planning

        return await planning.reply_to_server(components, sys.stdin.buffer.read())

    finish(with_open_components(go))


@app.command(name="dagster-home", hidden=True)
def print_dagster_home() -> None:
    """Make Dagster's folder and print its path, for `make dev`."""
    from ingest_assets.partitions import DagsterPartitions
    from ingest_assets.requests.request import partitions_of
    from ingest_assets.runs.dagster_home import dagster_home, is_missing
    from ingest_assets.runs.dagster_instance import open_instance

    def prepare() -> int:
        settings = load_settings()
        fresh = is_missing(settings)
        with open_instance(settings) as instance:
            if fresh:
                DagsterPartitions(instance).add(asyncio.run(partitions_of(Components(settings))))
        typer.echo(dagster_home(settings))
        return Exit.DONE

    finish(prepare)


def _asked(
    store: str, mode: Mode, *, stale: bool, failed: bool, missing: bool, where: str
) -> tuple[Asked | None, Mode]:
    """What is asked for, and the mode: `--failed` alone is a mode of its own."""
    if failed and not (store or where or stale or missing):
        return None, Mode.RETRY_FAILED
    return asked_for(store, stale=stale, failed=failed, missing=missing, where=where), mode


def _paths(named: list[str] | None) -> list[str]:
    """Paths as they were typed; an unset variable must not stand for the working directory."""
    if named and not all(named):
        raise NoSuchPathError("A path is empty. Name a file or folder; `.` is the working directory.")
    return named or []
