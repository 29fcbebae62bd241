"""Who may ask: bearer tokens, kept as hashes, each with its scopes, its organisation and its user.

A token has 256 random bits, so a plain SHA-256 of it can be kept: there is nothing to guess.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

TOKEN_VARIABLE = "INGEST_API_TOKEN"  # noqa: S105 - the name of a variable
PREFIX = "sha256:"
FEWEST_CHARACTERS = 20  # of a token that a person chose


class Scope(StrEnum):
    """What a token may be used for. Each includes those before it."""

    READ = "read"  # look and search
    WRITE = "write"  # have documents ingested, cancel, correct
    ADMIN = "admin"  # delete documents


_INCLUDED = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.WRITE: frozenset({Scope.READ, Scope.WRITE}),
    Scope.ADMIN: frozenset(Scope),
}


class Caller(msgspec.Struct, frozen=True):
    """Whoever a token stands for. It sees the documents of its organisation and no others."""

    user: str
    org_id: str
    scopes: frozenset[Scope]

    @classmethod
    def with_scopes(cls, user: str, org_id: str, scopes: Iterable[Scope]) -> "Caller":
        """A caller with these scopes and those they include."""
        return cls(user, org_id, frozenset().union(*(_INCLUDED[scope] for scope in scopes)))

    def reading_only(self) -> "Caller":
        """The same, allowed to look and nothing else."""
        return msgspec.structs.replace(self, scopes=self.scopes & {Scope.READ})


class Tokens:
    """The tokens a server accepts."""

    def __init__(self, known: Sequence[tuple[str, Caller]]) -> None:
        """Accept these.

        Args:
            known: for each token its hash, as `hash_of` gives it, and whose it is.
        """
        self._known = [(hash_.encode(), caller) for hash_, caller in known]

    def caller_of(self, token: str) -> Caller | None:
        """Whose token it is, or None. Takes as long for a wrong one as for any other."""
        asked = hash_of(token).encode()
        found = None
        for hash_, caller in self._known:
            if hmac.compare_digest(asked, hash_):
                found = caller
        return found


def new_token() -> str:
    """A token nobody can guess."""
    return secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """What is kept of a token."""
    return PREFIX + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
