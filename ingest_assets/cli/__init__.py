"""The command line."""

import sys

_INTERRUPTED = 130  # as `output.Exit` has it, which is not loaded yet


def main() -> None:
    """Run the command line. Ctrl-C while it is still being loaded ends it without a traceback, too."""
    try:
        from ingest_assets.cli.app import app
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    app()


__all__ = ["main"]
