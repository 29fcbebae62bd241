"""The command that frees room: gc."""

from ingest_assets.cli.output import Exit, complain, print_json, say
from ingest_assets.cli.watching import counter, progress
from ingest_assets.components import Components
from ingest_assets.requests.collecting import Collecting
from ingest_assets.upkeep.collecting import Collected
from resources.counting import counted
from resources.document_state.take_up import Mode


async def gc(components: Components, *, dry_run: bool, wait: bool, as_json: bool) -> int:
    """See `ingest gc`."""
    with progress(quiet=as_json) as watcher, counter("Artifacts", quiet=as_json) as advance:
        done = await Collecting(components, Mode.INCREMENTAL, watcher).collect(advance, dry_run=dry_run, wait=wait)
    if as_json:
        print_json(done)
    else:
        _print(done, "would be removed" if dry_run else "were removed")
    return Exit.FAILED if done.refused or done.n_workers or done.n_damaged else Exit.DONE


def _print(done: Collected, verb: str) -> None:
    if done.n_jobs:
        say(f"{done.n_jobs:,} old jobs {verb}.")
    if done.refused:
        complain(
            "No document refers to any artifact: they are another state's, most likely. None was removed. If nobody "
            "needs them, remove the artifact store itself."
        )
    elif done.n_damaged:
        complain("Records that cannot be read may refer to any artifact. None was removed.")
    elif done.n_workers:
        complain(
            f"{counted(done.n_workers, 'worker')} at documents held when this began may refer to any artifact yet. "
            "None was removed: run `ingest gc` again when they are done, or with --wait."
        )
    else:
        say(f"{counted(done.n_artifacts, 'artifact')} ({done.n_bytes:,} bytes) {verb}; {done.n_kept:,} stay.")
