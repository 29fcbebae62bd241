"""`python -m ingest_assets.cli`: what the command `ingest` does."""

from ingest_assets.cli import main

main()
