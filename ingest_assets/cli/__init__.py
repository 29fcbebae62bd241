"""The command line."""

from ingest_assets.cli.app import main

__all__ = ["main"]
