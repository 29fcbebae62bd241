"""The command that compares everything with everything: verify."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ingest_assets.cli.inspect import UnknownDocumentError, candidate_ids
from ingest_assets.cli.output import Exit, complain, print_json, print_table, say
from ingest_assets.cli.watching import counter, progress
from ingest_assets.components import Components
from ingest_assets.requests.asking import AskedWronglyError
from ingest_assets.targets import Target
from ingest_assets.upkeep.verify.difference import Difference
from ingest_assets.upkeep.verify.repair import Repair, Verified, known_to_dagster
from resources.counting import counted
from resources.store.store import StoreError

_SHOWN = 50


def verify(
    components: Components, named: Sequence[str], store: str, *, repair: bool, re_extract: bool, as_json: bool
) -> int:
    """See `ingest verify`."""
    if re_extract and not repair:
        raise AskedWronglyError("--re-extract goes with --repair.")
    targets, chosen = asyncio.run(_opened(components, named, store))
    with counter("Comparing", quiet=as_json) as advance, progress(quiet=True) as watcher:
        verified = Repair(components, targets, known_to_dagster(components), watcher).run(
            chosen, repair=repair, may_extract=re_extract, advance=advance
        )
    if as_json:
        print_json(_fields(verified))
    else:
        _print(verified, repair=repair)
    return Exit.FAILED if verified.remaining or verified.unreadable else Exit.DONE


async def _opened(
    components: Components, named: Sequence[str], store: str
) -> tuple[Mapping[str, Target], list[str] | None]:
    targets = {store: await components.target(store)} if store else await components.targets()
    if not named:
        return targets, None
    sources = list((await components.sources()).values())
    chosen = []
    for name in named:
        candidates = candidate_ids(sources, name)
        known = await components.state.examine_many(candidates)
        held = {key for target in targets.values() for key in _held_in(target, candidates)}
        found = [candidate for candidate in candidates if candidate in known or candidate in held]
        if not found:
            raise UnknownDocumentError(f"No document '{name}' is known, and no store holds it.")
        chosen.append(found[0])
    return targets, chosen


def _held_in(target: Target, document_ids: Sequence[str]) -> Collection[str]:
    try:
        return target.store.held_contents(document_ids)
    except StoreError:
        return ()  # the comparison tells of it


def _fields(verified: Verified) -> dict[str, Any]:
    remaining = {difference.key for difference in verified.remaining}
    return {
        "n_documents": verified.n_documents,
        "n_busy": verified.n_busy,
        "n_unchecked": verified.n_unchecked,
        "n_differences": len(verified.found),
        "n_remaining": len(verified.remaining),
        "differences": [_row(found, repaired=found.key not in remaining) for found in verified.found]
        + [_row(found, repaired=False) for found in _appeared(verified)],
        "problems": verified.problems,
        "unreadable_stores": verified.unreadable,
    }


def _row(found: Difference, *, repaired: bool) -> dict[str, Any]:
    return {
        "document_id": found.document_id,
        "where": found.where,
        "what": found.what,
        "detail": found.detail,
        "repaired": repaired,
    }


def _appeared(verified: Verified) -> list[Difference]:
    """What was only seen once something else was mended."""
    before = {difference.key for difference in verified.found}
    return [difference for difference in verified.remaining if difference.key not in before]


def _print(verified: Verified, *, repair: bool) -> None:
    remaining = {difference.key for difference in verified.remaining}
    every = [*verified.found, *_appeared(verified)]
    # What is left is what a person has to see.
    every.sort(key=lambda difference: difference.key not in remaining)
    rows = [
        (found.document_id, found.where, found.what, found.detail, "no" if found.key in remaining else "repaired")
        for found in every[:_SHOWN]
    ]
    if rows:
        columns = ["document", "where", "what differs", "detail", "repaired"]
        print_table(columns if repair else columns[:-1], rows if repair else [row[:-1] for row in rows])
    if len(every) > _SHOWN:
        say(f"… and {len(every) - _SHOWN:,} more: --json lists all.")
    if every:
        say("")
        counts = Counter((found.where, found.what) for found in every)
        print_table(["where", "what differs", "#number"], [(*key, n) for key, n in sorted(counts.items())])
    for document_id, problem in sorted(verified.problems.items()):
        complain(f"{document_id}: {problem}" if document_id else problem)
    for said in verified.unreadable.values():
        complain(said)
    busy = f" {verified.n_busy:,} are being worked on and were left out." if verified.n_busy else ""
    if every:
        say("")
    without = f" without store {', '.join(sorted(verified.unreadable))}" if verified.unreadable else ""
    say(f"Compared {counted(verified.n_documents)}{without}: {_verdict(verified, repair=repair)}.{busy}")


def _verdict(verified: Verified, *, repair: bool) -> str:
    if not verified.found:
        return "nothing differs"
    if not repair:
        return f"{len(verified.found):,} differences; `ingest verify --repair` mends them"
    if verified.unreadable:
        return f"{len(verified.found):,} differences; none was mended, since what those stores hold cannot be seen"
    return f"{len(verified.found):,} differences, {len(verified.remaining):,} of them remain"
