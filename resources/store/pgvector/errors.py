"""PostgreSQL's errors as the store's own: what may heal, what needs a person, what is the data's own fault."""

import psycopg

from resources.store.pgvector.address import Address
from resources.store.store import StoreConfigError, StoreCorruptError, StoreError, StoreUnavailableError

# Classes of SQLSTATE (its first two characters) and single ones, by what helps.
_MAY_HEAL = (
    "08",  # the connection
    "25",  # a standby during a failover, a transaction that stood idle too long
    "40",  # deadlock, serialization
    "53",  # full disk, memory, connections
    "55",  # a lock not to be had in time
    "57",  # shutdown, start, statement timeout
    "58030",  # input or output
)
_PERSON = ("28", "3D", "3F", "42501", "0A", "58P01")  # credentials, database, schema, permission, extension
_DATA = ("22", "23", "54")  # what was given cannot be held: too large, not text, twice

# A connection that is refused has no SQLSTATE in libpq, only words in the server's language; words we do not know
# count as something that may heal.
_REFUSALS = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "pg_hba.conf rejects",
    "is not permitted to log in",
    "permission denied",
    "does not support SSL",
    "certificate verify failed",
)


def domain_error(store: str, address: Address, error: psycopg.Error) -> StoreError | ValueError:
    """What the error means. A ValueError is about what was given, so it concerns single documents."""
    words = address.redacted(" ".join(str(error).split()).rstrip(".?"))
    state = error.sqlstate or ""
    if state.startswith(_DATA) or (not state and isinstance(error, psycopg.DataError)):
        return ValueError(f"Store '{store}': PostgreSQL cannot hold what was given: {words}")
    if state.startswith(_MAY_HEAL):
        return StoreUnavailableError(store, f"{address} did not do it: {words}")
    if state.startswith(_PERSON) or (not state and any(refusal in words for refusal in _REFUSALS)):
        return StoreConfigError(store, f"{address} refuses: {words}. {_advice(state)}")
    if not state:
        return StoreUnavailableError(store, f"{address} cannot be reached: {words}")
    return StoreCorruptError(
        store,
        f"the tables in {address} are not as this program made them: {words} (SQLSTATE {state}). "
        "Restore them from a backup, or drop the store and build it again.",
    )


def _advice(state: str) -> str:
    if state.startswith(("0A", "58")):
        return "Install pgvector on the server, then run: CREATE EXTENSION vector"
    if state == "42501":
        return (
            "Let an administrator run CREATE EXTENSION vector, and either grant the store's role CREATE on the "
            "database or run CREATE SCHEMA with AUTHORIZATION for that role."
        )
    return "Correct user, password, host and database in the store's address."
