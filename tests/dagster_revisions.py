"""Dagster's schema revisions, read once a process.

Its storages load all of them, 90 modules, twice whenever an instance is opened, and eight times where its databases
have to be made.
"""

from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.storage.sql import ALEMBIC_SCRIPTS_LOCATION


def read_revisions_once() -> None:
    """Read them now, and let every storage of this process and its forks use these."""
    config = Config()
    config.set_main_option("script_location", ALEMBIC_SCRIPTS_LOCATION)
    revisions = ScriptDirectory.from_config(config)
    revisions.as_revision_number("head")
    ScriptDirectory.from_config = lambda _config: revisions  # type: ignore[method-assign]
