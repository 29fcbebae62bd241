"""The child's main loop: one document after the other, until the parent closes the pipe."""

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from resources.document_state.reasons import Reason

from . import frames, sandbox
from .chunk import load_splitter
from .document import parse
from .frames import PREFIX, Reply, Request
from .limits import ParseLimits
from .result import ParseFailure
from .unpack import unpack

# Documents leave few cycles behind, and looking for them costs 7 % of the time that PDFs take (measured on 140).
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> None:
    """Serve documents. The first request is the setup; its reply says that the child is ready."""
    requests, replies = _own_pipes()
    header, _ = _receive(requests)
    setup = frames.decode_setup(header)
    resident = _resident_kib()
    load_splitter(setup.chunking)  # it may lie anywhere, so it is imported while anything can be read
    lost = sandbox.enter(setup.limits, setup.parent, _program_folders())
    _write(replies, frames.encode(frames.Ready(lost)), resident)
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    while True:
        try:
            header, content = _receive(requests)
        except EOFError:
            return
        begun = time.monotonic()
        outcome = _answer(frames.decode_request(header), content, setup)
        del content
        outcome.seconds = round(time.monotonic() - begun, 4)
        _send(replies, outcome, setup.limits, resident)


def _answer(request: Request, content: bytes, setup: frames.Setup) -> Reply:
    if request.unpack_from is None:
        return parse(request.filename, content, setup.limits, setup.chunking)
    return unpack(request.filename, content, request.unpack_from, setup.limits)


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take the pipes from descriptors 0 and 1, so that a library that prints cannot break a frame."""
    requests = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    # The parent reads what is said on descriptor 2 only after a death; a full pipe must not stop the child.
    os.set_blocking(2, False)
    return requests, replies


def _program_folders() -> Iterator[str]:
    """Where modules that are needed later are imported from: Python, what is installed for it, and our packages.

    Not the folder that ours lie in, nor others of the caller's path: those are a user's, with secrets and documents.
    """
    yield from (f"{prefix}/lib" for prefix in (sys.base_prefix, sys.prefix))
    yield from (entry for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"})
    root = Path(__file__).resolve().parents[2]
    yield from (str(root / package) for package in ("ingest_assets", "resources"))
    yield from ("/lib", "/lib64", "/usr/lib", "/usr/lib64")  # the libraries that these are linked to


def _resident_kib() -> Callable[[], int]:
    """A function that tells this process's resident memory in KiB, in 2 µs; 0 where there is no /proc.

    The peak that getrusage tells is no use: after a vfork it begins at the parent's size.
    """
    try:
        statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return lambda: 0
    page_kib = os.sysconf("SC_PAGE_SIZE") // 1024
    return lambda: int(os.pread(statm, 100, 0).split()[1]) * page_kib


def _receive(requests: BinaryIO) -> tuple[bytes, bytes]:
    header_length, content_length = PREFIX.unpack(_exactly(requests, PREFIX.size))
    return _exactly(requests, header_length), _exactly(requests, content_length)


def _exactly(requests: BinaryIO, length: int) -> bytes:
    data = requests.read(length)
    if len(data) < length:
        raise EOFError
    return data


def _send(replies: BinaryIO, outcome: Reply, limits: ParseLimits, resident: Callable[[], int]) -> None:
    body = _encoded(outcome)
    if len(body) > limits.reply_bytes:
        body = frames.encode(ParseFailure(Reason.TOO_LARGE, "Its pieces are larger than a result may be."))
    _write(replies, body, resident)


def _write(replies: BinaryIO, body: bytes, resident: Callable[[], int]) -> None:
    view = memoryview(PREFIX.pack(len(body), resident()) + body)
    while view:
        view = view[replies.write(view) :]


def _encoded(outcome: Reply) -> bytes:
    try:
        return frames.encode(outcome)
    except MemoryError:
        return frames.encode(ParseFailure(Reason.OUT_OF_MEMORY, "The result did not fit into memory."))
