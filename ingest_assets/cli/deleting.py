"""The commands that take documents out for good, and bring them back: delete, restore."""

import asyncio
from collections.abc import Sequence

from ingest_assets.cli.inspect import find_document
from ingest_assets.cli.output import Exit, complain, print_json, print_table, say
from ingest_assets.cli.watching import progress
from ingest_assets.cli.work import ids_of, told
from ingest_assets.components import Components
from ingest_assets.requests.deleting import Deleting, Deletion, Fate
from resources.counting import counted
from resources.document_source.document_ids import shown_key
from resources.document_state.take_up import Mode

_STAYS = (
    "the object in its source, which is yours to remove",
    "a record with its name, so that no listing brings it back: `ingest restore` does",
    "Dagster's event log: its materializations with title and source path, and runs that name it",
    "results of jobs, with its name and what failed",
    "backups, and older versions in a bucket that keeps them",
)


def delete(components: Components, named: Sequence[str], *, yes: bool, as_json: bool) -> int:
    """See `ingest delete`."""
    if not yes:
        asyncio.run(_announce(components, named))
        return Exit.USAGE
    with progress(quiet=as_json) as watcher:
        ids = asyncio.run(ids_of(components, named))
        deletions = Deleting(components, Mode.INCREMENTAL, watcher).delete(ids)
    if as_json:
        print_json({"documents": deletions, "stays": _STAYS})
    else:
        _print(deletions)
    whole = all(deletion.fate is Fate.DELETED and not deletion.still_in for deletion in deletions)
    return Exit.DONE if whole else Exit.FAILED


def restore(components: Components, named: Sequence[str], *, as_json: bool) -> int:
    """See `ingest restore`."""
    with progress(quiet=as_json) as watcher:
        ids = asyncio.run(ids_of(components, named))
        outcome = Deleting(components, Mode.INCREMENTAL, watcher).restore(ids)
    return told(outcome, as_json=as_json)


async def _announce(components: Components, named: Sequence[str]) -> None:
    docs = [await find_document(components, name) for name in named]
    print_table(
        ["document", "source", "stores"],
        [(shown_key(doc.source_uri), doc.source, ", ".join(sorted(doc.links)) or "none") for doc in docs],
    )
    complain(
        f"{counted(len(docs))} would be removed from their stores, with everything that was made of them. Nothing was "
        "deleted: repeat it with --yes."
    )


def _print(deletions: Sequence[Deletion]) -> None:
    print_table(["document", "outcome"], [(deletion.filename, deletion.fate) for deletion in deletions])
    for deletion in deletions:
        if deletion.fate is Fate.BUSY:
            complain(f"{deletion.filename}: a worker has it. Nothing was changed: delete it again when that run ended.")
        for slug, why in deletion.still_in.items():
            complain(f"{deletion.filename}: store '{slug}' may hold it still: {why}. {_what_to_do(deletion, slug)}")
    say("\nWhat stays:")
    for kept in _STAYS:
        say(f"- {kept}")


def _what_to_do(deletion: Deletion, slug: str) -> str:
    if deletion.fate is Fate.DELETING:
        return "It is tried again by itself, and by `ingest run --mode resume`."
    return f"It leaves it when the store is back there, or drop the store with its data: `ingest stores drop {slug}`."
