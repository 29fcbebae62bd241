"""Objects that change only on the condition that they are as they were read.

A change is a function of the object's bytes that may be applied again to its own outcome. So a PUT whose answer was
lost needs no detective: the object is read, and the change is tried on what is there.
"""

import threading
from collections.abc import Callable

from resources.aws.location import AwsLocation
from resources.records.backend import BackendUnavailableError
from resources.records.s3.bucket import Bucket, Found, Refusal
from resources.records.s3.patience import Patience
from resources.records.s3.probe import probe

Transform = Callable[[bytes | None], bytes | None]


class S3Objects:
    """The objects below a prefix. Requests block; for many threads at once."""

    def __init__(self, location: AwsLocation) -> None:
        self.bucket = Bucket(location)
        self._probing = threading.Lock()
        self._probed = False

    def read(self, name: str) -> Found | None:
        """An object as it is now, or None.

        Raises:
            BackendError: by what went wrong.
        """
        found = self.bucket.get(name)
        return found if isinstance(found, Found) else None

    def change(self, name: str, transform: Transform, seen: Found | None = None) -> Found | None:
        """Change an object, and give it as it is then.

        Args:
            name: which.
            transform: its new bytes, given those it has (None: it is absent); None or the same: leave it.
            seen: how it was last; right or wrong, it saves a request. None: absent.

        Raises:
            BackendError: by what went wrong; the change may have been made.
        """
        self._make_sure_of_conditions()
        patience = Patience(self.bucket.uri, name)
        current, is_fresh = seen, False
        while True:
            before = current.body if current else None
            body = transform(before)
            if body is None or body == before:
                if is_fresh:
                    return current
                current, is_fresh = self.read(name), True
                continue
            try:
                answer = self.bucket.put(name, body, current.etag if current else "")
            except BackendUnavailableError as error:
                patience.after_outage(error)
            else:
                if isinstance(answer, str):
                    return Found(answer, body)
                patience.after_race()
                if answer is Refusal.BUSY:
                    continue
            current, is_fresh = self.read(name), True

    def _make_sure_of_conditions(self) -> None:
        with self._probing:
            if not self._probed:
                probe(self.bucket)
                self._probed = True
