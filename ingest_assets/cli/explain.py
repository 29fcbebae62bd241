"""The command that explains: why."""

from collections.abc import Iterable

import msgspec

from ingest_assets.cli.inspect import find_document
from ingest_assets.cli.output import Exit, print_json, print_table, say
from ingest_assets.components import Components
from ingest_assets.upkeep.staleness import Standing, standings
from resources.document_source.document_ids import shown_key


async def why(components: Components, named: str, store: str, as_json: bool) -> int:
    """See `ingest why`."""
    slugs = [(await components.target(store)).store.slug] if store else list(await components.targets())
    doc = await find_document(components, named)
    found = standings(doc, await components.configured(), slugs)
    is_current = all(standing.is_current for standing in found)
    if as_json:
        print_json(
            {
                "document_id": doc.document_id,
                "source_uri": doc.source_uri,
                "lifecycle": doc.lifecycle,
                "current": is_current,
                "standings": [{"phase": _phase(s), **msgspec.to_builtins(s)} for s in found],
            }
        )
    else:
        say(f"{shown_key(doc.source_uri)}: {doc.lifecycle}")
        print_table(["where", "stands", "why", "what to do"], _rows(found))
    return Exit.DONE if is_current else Exit.FAILED


def _phase(standing: Standing) -> str:
    return "build" if standing.store else "extraction"


def _rows(found: Iterable[Standing]) -> list[tuple[str, ...]]:
    return [
        (
            f"store {standing.store}" if standing.store else "extraction",
            standing.verdict,
            "\n".join([*([standing.why] if standing.why else []), *map(str, standing.differences)]),
            standing.what_to_do,
        )
        for standing in found
    ]
