"""Whether an endpoint honours conditions. One that ignores them would let two writers overwrite each other unseen.

That an endpoint passed is remembered by the process and nowhere else. A note in the bucket would be copied along with
it to the server that ignores conditions, and six requests per process that writes are not worth that.
"""

import secrets

from resources.records.backend import BackendError, BackendUnavailableError
from resources.records.s3.bucket import Bucket, NoBody, Refusal

_ATTEMPTS = 5
_WRONG = '"00000000000000000000000000000000"'


def probe(bucket: Bucket) -> None:
    """Try each condition on an object of a fresh name, and remove it.

    A first PUT that is refused was committed by a request whose reply was lost and which boto3 sent again: the name is
    nobody else's. So the object's ETag is read, not taken from the PUT.

    Raises:
        BackendError: the endpoint ignores a condition, or by what went wrong.
    """
    name = f"probe-{secrets.token_urlsafe(8)}"
    _create(bucket, name)
    ignored = [condition for condition, honoured in _try(bucket, name) if not honoured]
    bucket.delete(name)
    if ignored:
        raise BackendError(
            bucket.uri,
            f"the endpoint ignores {' and '.join(ignored)}. Records would be lost there unseen; "
            "use one that has conditional writes.",
        )


def _create(bucket: Bucket, name: str) -> None:
    for _ in range(_ATTEMPTS):
        if bucket.put(name, b"1", "") is not Refusal.BUSY:
            return
    raise BackendUnavailableError(bucket.uri, f"{name}: other requests for it were under way. Try again later.")


def _try(bucket: Bucket, name: str) -> list[tuple[str, bool]]:
    created_twice = bucket.put(name, b"2", "")
    overwritten = bucket.put(name, b"3", _WRONG)
    found = bucket.get(name)
    again = found if isinstance(found, NoBody) else bucket.get(name, found.etag)
    return [
        ("If-None-Match of a PUT", isinstance(created_twice, Refusal)),
        ("If-Match of a PUT", isinstance(overwritten, Refusal)),
        ("If-None-Match of a GET", again is NoBody.UNCHANGED),
    ]
