"""The port through which containers (archives, mails) are opened: hostile bytes, so by a process that can be killed."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import msgspec

from resources.document_state.reasons import Reason


class UnpackError(Exception):
    """A container could not be opened whole; nothing is known of its members. `reason` is what its document ends as."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class UnpackedMember(msgspec.Struct, frozen=True, omit_defaults=True):
    """One member as a container has it.

    Attributes:
        name: what the container calls it: anything, doubles too; never a path of ours.
        content: its bytes.
        reason, detail: why its bytes are not given; its neighbours' are.
    """

    name: str
    content: bytes = b""
    reason: Reason | None = None
    detail: str = ""


class Unpacker(ABC):
    """Opens containers. May be used by many threads at once."""

    @abstractmethod
    def unpack(self, filename: str, content: bytes) -> Iterator[UnpackedMember]:
        """The members of a container, in its order; those of containers in it are not opened.

        Raises:
            UnpackError: it is damaged, encrypted, over a limit, or no container; members given before do not count.
        """
