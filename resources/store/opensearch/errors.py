"""OpenSearch's errors as the store's own: what may heal, what needs a person, what is the data's own fault."""

from http import HTTPStatus

from opensearchpy.exceptions import ConnectionError as NoConnectionError
from opensearchpy.exceptions import SSLError, TransportError

from resources.store.store import (
    StoreChangedError,
    StoreConfigError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
)

# What may be sent again at once: the server says that it did nothing, for want of room or of a shard.
SEND_AGAIN = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)

_LONGEST_WORDS = 300
# Our own mapping takes every row we make; a server that says otherwise has another one.
_MAPPING = "strict_dynamic_mapping_exception"


def domain_error(store: str, url: str, error: TransportError) -> StoreError | ValueError:
    """What an answer, or none, means. A ValueError is about what was given, so it concerns single documents."""
    if isinstance(error, SSLError):
        return StoreConfigError(
            store,
            f"the certificate of {url} cannot be verified: {_short(error.error)}. Name the authority's file with "
            "'ca_certs'.",
        )
    if isinstance(error, NoConnectionError) or not isinstance(error.status_code, int):
        # The driver's words begin with an object and where it is in memory.
        return StoreUnavailableError(store, f"{url} cannot be reached: {_short(str(error.error).split('>: ')[-1])}")
    meaning = meaning_of(store, url, error.status_code, str(error.error), _reason(error))
    if isinstance(meaning, StoreError) or error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return meaning
    return StoreConfigError(
        store,
        f"{url} does not take a request ({error.status_code}): {_short(error.error)}: {_short(_reason(error))}. It "
        "must be OpenSearch 2.4 or later with the k-NN plugin; small stores do without its searches by "
        "search = 'client'.",
    )


def meaning_of(store: str, url: str, status: int, kind: str, reason: str) -> StoreError | ValueError:
    """What the status of a request or of one row in it means. `kind` is the server's name for the error."""
    words = f"{_short(kind)}: {_short(reason)}" if reason else _short(kind)
    if status in (*SEND_AGAIN, HTTPStatus.REQUEST_TIMEOUT) or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return StoreUnavailableError(store, f"{url} did not do it ({status}): {words}")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return StoreConfigError(
            store,
            f"{url} refuses ({status}): {words}. Correct the user and password in the environment ('username_env', "
            "'password_env'), or let an administrator give the user the permissions in docs/stores.md.",
        )
    if status == HTTPStatus.NOT_FOUND:
        return StoreChangedError(store, f"its index went away meanwhile: {words}. Ask again what is held.")
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return ValueError(f"Store '{store}': a chunk is larger than {url} takes in one request.")
    if kind == _MAPPING:
        return StoreCorruptError(
            store, f"its index has another mapping than this program gave it: {words}. Drop it and build it again."
        )
    return ValueError(f"Store '{store}': OpenSearch cannot hold what was given: {words}")


def _reason(error: TransportError) -> str:
    info = error.info
    if not isinstance(info, dict) or not isinstance(info.get("error"), dict):
        return ""
    causes = info["error"].get("root_cause") or [info["error"]]
    return str(causes[0].get("reason", ""))


def _short(words: object) -> str:
    return " ".join(str(words).split())[:_LONGEST_WORDS].rstrip(".")
