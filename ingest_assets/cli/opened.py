"""How a command gets what it works with, and names at its end the records it had to leave out."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ingest_assets.cli.output import Exit, complain
from ingest_assets.components import Components
from ingest_assets.settings import load_settings

_SHOWN = 20


def with_components(command: Callable[[Components], int]) -> Callable[[], int]:
    """A command that opens and closes what it needs by itself, since it executes runs."""

    def run() -> int:
        components = Components(load_settings())
        return _exit_code(components, command(components))

    return run


def with_open_components(command: Callable[[Components], Coroutine[Any, Any, int]]) -> Callable[[], int]:
    """A command within whose call everything is open, and closed after it."""

    async def run() -> int:
        async with Components(load_settings()) as components:
            return _exit_code(components, await command(components))

    return lambda: asyncio.run(run())


def _exit_code(components: Components, code: int) -> int:
    """What a command ends with. One that left documents out has not done all of its work, whatever it says itself."""
    damaged = sorted(components.state.damaged)
    if not damaged:
        return code
    named = ", ".join(damaged[:_SHOWN]) + (f" and {len(damaged) - _SHOWN:,} more" if len(damaged) > _SHOWN else "")
    complain(
        f"Damaged records: {len(damaged):,}. They cannot be read, so their documents were left out: {named}. "
        "`ingest verify --repair` mends them; then run this again."
    )
    return code or Exit.FAILED
