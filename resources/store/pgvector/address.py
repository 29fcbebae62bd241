"""Where a pgvector store's database is, as the configuration says it, and what must never be shown of it."""

import os
from typing import Annotated

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict

from resources.store.store import StoreConfigError

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
_SECRETS = ("password", "sslpassword")
_EXAMPLE = "postgresql://user@host:5432/database"


class PgvectorConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `ingest.toml` may say about a store of this kind. Timeouts are in seconds.

    `url` is shown in messages, so it holds no password; PGPASSWORD or a password file gives one. Without `url` the
    environment variable named by `dsn_env` holds the URL, and that one may.
    """

    url: str = ""
    dsn_env: str = "INGEST_PGVECTOR_URL"
    schema: str = "ingest"
    statement_timeout: Seconds = 60.0
    lock_timeout: Seconds = 30.0


class Address:
    """How the database is reached. Shown as host and database, never as what opens it."""

    def __init__(self, parts: dict[str, str]) -> None:
        # What libpq may wait for a host is bounded; an address may say otherwise.
        self.parts = {"connect_timeout": "10", "application_name": "ingest"} | parts
        self._secrets = [parts[name] for name in _SECRETS if parts.get(name)]

    def __str__(self) -> str:
        host = self.parts.get("host") or self.parts.get("hostaddr") or "the default host"
        return self.redacted(f"database '{self.parts.get('dbname', '')}' at {host}")

    def holds_secret(self, text: str) -> bool:
        """Whether the text shows a password."""
        return any(secret in text for secret in self._secrets)

    def redacted(self, text: str) -> str:
        """The text without any password."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def check_config(store: str, config: PgvectorConfig) -> None:
    """Refuse a `url` that is none or shows a password. The environment is looked at when it is needed.

    Raises:
        StoreConfigError: see above; the message does not repeat the URL.
    """
    if config.url and any(_parts(store, "option 'url'", config.url).get(name) for name in _SECRETS):
        raise StoreConfigError(
            store,
            "option 'url' holds a password, and the configuration is shown in messages. Put the whole URL into the "
            f"environment variable {config.dsn_env} instead, or the password into PGPASSWORD or a password file.",
        )


def address_of(store: str, config: PgvectorConfig) -> Address:
    """Where the database is now: the environment is read each time, so that a changed password counts at once.

    Raises:
        StoreConfigError: no database is named, or not by a URL.
    """
    if config.url:
        return Address(_parts(store, "option 'url'", config.url))
    text = os.environ.get(config.dsn_env, "")
    if not text:
        raise StoreConfigError(
            store,
            f"no database is named. Set the environment variable {config.dsn_env} or the option 'url': {_EXAMPLE}",
        )
    return Address(_parts(store, f"environment variable {config.dsn_env}", text))


def _parts(store: str, where: str, text: str) -> dict[str, str]:
    parts = _parsed(text)
    if parts is None:
        raise StoreConfigError(store, f"{where} is no address libpq can read. It looks like this: {_EXAMPLE}")
    return parts


def _parsed(text: str) -> dict[str, str] | None:
    try:
        parts = conninfo_to_dict(text)
    except psycopg.ProgrammingError:
        # libpq's message quotes the text, password and all: it ends here.
        return None
    return {name: str(value) for name, value in parts.items() if value is not None}
