"""How commands speak: tables and sentences for people, JSON for programs, exit codes for both."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import IntEnum
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from resources.clock import to_the_second


class Exit(IntEnum):
    """What the exit code of a command means."""

    DONE = 0  # succeeded, or nothing to do
    FAILED = 1  # some or all documents failed, or a difference was found
    USAGE = 2  # the command or the configuration is wrong
    BLOCKED = 3  # held back by the spend gate
    INTERRUPTED = 130  # by Ctrl-C; claims are released
    TERMINATED = 143  # by SIGTERM; the same


_WIDTH_IN_A_FILE = 10_000  # nothing is wrapped where a program reads


def _fill_standard_descriptors() -> None:
    """Open what whoever started us had closed: the next file would get its number, and be printed into."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one


class _Console(Console):
    """Speaks to people or a program, as long as they listen: `ingest status | head` is no fault."""

    def on_broken_pipe(self) -> None:
        """Whoever read has left: the work goes on, and what is still to be said goes nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def _console_on(descriptor: int) -> Console:
    width = None if os.isatty(descriptor) else _WIDTH_IN_A_FILE
    return _Console(file=os.fdopen(os.dup(descriptor), "w", encoding="utf-8"), highlight=False, width=width)


_fill_standard_descriptors()

# Dagster redirects the process's own stdout and stderr into a run's log while it executes: people are spoken to
# through copies made before.
console = _console_on(1)
errors = _console_on(2)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    raw = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2)
    print_as_it_is(raw.decode() + "\n")


def print_as_it_is(text: str) -> None:
    """Text on stdout for a program: nothing is wrapped, marked or left out."""
    try:
        console.file.write(text)
        console.file.flush()
    except BrokenPipeError:
        console.on_broken_pipe()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "", whole: str = "") -> None:
    """A table; cells are shown as they are, never read as markup. The column `whole` is as wide as its cells need."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        numeric = column.startswith("#")
        table.add_column(
            column.lstrip("#"),
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=column == whole,
        )
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    if console.is_terminal:
        console.print(table)
        return
    # In a file a row is as long as what it says: blanks up to the longest cell would only hide that.
    with console.capture() as printed:
        console.print(table)
    console.file.write("".join(f"{line.rstrip()}\n" for line in printed.get().splitlines()))
    console.file.flush()


def say(message: str) -> None:
    """A sentence on stdout."""
    console.print(Text(printable(message)))


def complain(message: str) -> None:
    """A sentence on stderr."""
    errors.print(Text(printable(message)))


def shown_time(moment: datetime | None) -> str:
    """A moment for people, to the second; its column says that it is UTC."""
    return to_the_second(moment) if moment else ""


def printable(text: str) -> str:
    """Text that cannot move the cursor or hide itself: what does not print is shown as its code."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)
