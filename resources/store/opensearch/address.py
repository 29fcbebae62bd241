"""Where an OpenSearch store's cluster is, as the configuration says it, and what must never be shown of it."""

import os
import re
from ipaddress import ip_address
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from resources.store.store import StoreConfigError

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
_PREFIX_ENV = "INGEST_INDEX_PREFIX"
_PREFIX = re.compile(r"[a-z0-9][a-z0-9._-]*")
# The server's limit for an index's name, less what the writing alias adds.
_LONGEST_NAME = 245
_EXAMPLE = "https://search.example.org:9200"


class OpenSearchConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `ingest.toml` may say about a store of this kind. Timeouts are in seconds.

    `url` is shown in messages, so it holds no user and no password: the environment variables named by `username_env`
    and `password_env` do. `search` says who finds the nearest: the server by looking at every vector (`exact`) or by
    its graph (`approximate`), or this program (`client`, for small stores on servers without the k-NN plugin).
    """

    url: str
    username_env: str = ""
    password_env: str = ""
    verify_certs: bool = True
    ca_certs: str = ""
    search: Literal["exact", "approximate", "client"] = "exact"
    shards: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 1
    replicas: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1
    timeout: Seconds = 60.0
    attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] = 6
    legacy_index: str = ""
    legacy_vector_field: str = "vector"


def check_config(store: str, config: OpenSearchConfig) -> None:
    """Refuse addresses that are none, show a secret or would send one in the clear.

    Raises:
        StoreConfigError: see above; the message does not repeat the URL.
    """
    url = urlsplit(config.url)
    if (
        url.scheme not in ("http", "https")
        or not url.hostname
        or url.query
        or url.fragment
        or not _has_port(config.url)
    ):
        raise StoreConfigError(store, f"option 'url' is no address of a cluster. It looks like this: {_EXAMPLE}")
    if url.username is not None or url.password is not None:
        raise StoreConfigError(
            store,
            "option 'url' holds a user or password, and the configuration is shown in messages. Name environment "
            "variables that hold them with the options 'username_env' and 'password_env'.",
        )
    if bool(config.username_env) != bool(config.password_env):
        raise StoreConfigError(store, "the options 'username_env' and 'password_env' go together; only one is set.")
    if config.username_env and url.scheme == "http" and not _is_this_machine(url.hostname):
        raise StoreConfigError(store, f"a password goes over https only, or to this machine: {_EXAMPLE}")


def index_name(store: str) -> str:
    """The name of the store's index: the prefix from the environment, and the store's.

    Raises:
        StoreConfigError: the server would not take such a name.
    """
    prefix = os.environ.get(_PREFIX_ENV) or "ingest"
    if not _PREFIX.fullmatch(prefix):
        raise StoreConfigError(
            store,
            f"{_PREFIX_ENV} is '{prefix}', and an index's name has a-z, 0-9, '.', '_' and '-' only, and begins with a "
            "letter or digit.",
        )
    name = f"{prefix}-{store}"
    if len(name) > _LONGEST_NAME or not _PREFIX.fullmatch(name):
        raise StoreConfigError(store, f"'{name}' cannot be an index's name: too long, or a character it must not have.")
    return name


def credentials(store: str, config: OpenSearchConfig) -> tuple[str, str] | None:
    """User and password as they are now: the environment is read each time, so that a changed one counts at once.

    Raises:
        StoreConfigError: a variable that is named is not set.
    """
    if not config.username_env:
        return None
    for name in (config.username_env, config.password_env):
        if not os.environ.get(name):
            raise StoreConfigError(store, f"the environment variable {name} is not set; it opens {config.url}.")
    return os.environ[config.username_env], os.environ[config.password_env]


def client_options(config: OpenSearchConfig, auth: tuple[str, str] | None) -> dict[str, Any]:
    """How the driver is made: it repeats nothing by itself, and trusts no certificate it cannot verify."""
    options: dict[str, Any] = {"hosts": [config.url], "timeout": config.timeout, "max_retries": 0, "http_auth": auth}
    if urlsplit(config.url).scheme == "https":
        options |= {"verify_certs": config.verify_certs, "ssl_show_warn": False}
        options |= {"ca_certs": config.ca_certs} if config.ca_certs else {}
    return options


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _has_port(url: str) -> bool:
    """Whether the port, if there is one, is a number."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False
