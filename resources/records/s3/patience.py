"""How often a change is tried, and the growing pauses between, of random length so that rivals part."""

import random
import time

from resources.records.backend import BackendUnavailableError

_RACES = 40  # attempts in which others were first
_OUTAGES = 3  # attempts without a clear answer, each of them sent several times by boto3
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 1.0


class Patience:
    """What is left of the attempts at one change."""

    def __init__(self, uri: str, name: str) -> None:
        self._uri = uri
        self._name = name
        self._races = 0
        self._outages = 0

    def after_race(self) -> None:
        """Wait: somebody else was first.

        Raises:
            BackendUnavailableError: that was the last attempt.
        """
        self._races += 1
        if self._races == _RACES:
            raise BackendUnavailableError(
                self._uri, f"{self._name}: others were first {_RACES} times. Try again later."
            )
        self._pause(self._races)

    def after_outage(self, error: BackendUnavailableError) -> None:
        """Wait: it is not clear whether the change was written.

        Raises:
            BackendUnavailableError: that was the last attempt.
        """
        self._outages += 1
        if self._outages == _OUTAGES:
            raise error
        self._pause(self._outages)

    @staticmethod
    def _pause(times: int) -> None:
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**times)
        time.sleep(random.uniform(0, longest))  # noqa: S311 - no secret
