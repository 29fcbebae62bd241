"""A person's own editor on a text, and what they made of it."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ingest_assets.cli.output import complain


class NoEditorError(ValueError):
    """There is no editor to open, or it did not end well. Nothing was changed."""


@contextlib.contextmanager
def edited_by_hand(text: str, *, again: str) -> Iterator[bytes]:
    """Open `$VISUAL` or `$EDITOR` on a text; gives what it was saved as.

    If the block fails, the file stays and is named, so that what a person wrote is not lost.

    Args:
        text: what to edit.
        again: the command that takes the file, without it.

    Raises:
        NoEditorError: no terminal, no editor, or one that failed.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    if not sys.stdin.isatty():
        raise NoEditorError("There is no terminal to edit on: give the lines with --file FILE, or --file - for stdin.")
    if not editor.strip():
        raise NoEditorError("No editor is set: set $EDITOR, or give the lines with --file.")
    descriptor, name = tempfile.mkstemp(prefix="chunks-", suffix=".jsonl")  # readable by nobody else
    path = Path(name)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        _open(editor, path)
        yield path.read_bytes()
    except BaseException:
        if path.exists() and path.read_bytes() != text.encode():
            complain(f"What was written is kept: mend it if need be, then `{again} {path}`.")
        else:
            path.unlink(missing_ok=True)
        raise
    path.unlink(missing_ok=True)


def _open(editor: str, path: Path) -> None:
    # Ctrl-C in an editor is the editor's. A handler, since a signal that is ignored would stay so in the editor.
    former = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode  # noqa: S603 - it is theirs
    except (OSError, ValueError) as error:
        raise NoEditorError(f"The editor '{editor}' cannot be started: {error}.") from error
    finally:
        signal.signal(signal.SIGINT, former)
    if code != 0:
        raise NoEditorError(f"The editor '{editor}' ended with code {code}. Nothing was changed.")
