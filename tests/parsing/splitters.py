"""Splitters a user could have written, some of them hostile; the child imports them by name."""

import ctypes
import os
import sys
import time


def by_line(text: str) -> list[str]:
    """One piece a line."""
    return text.splitlines()


def hostile(text: str) -> list[str]:
    """Do what the text says, or give it back."""
    if "HANG" in text:
        time.sleep(60)
    full = b"x" * (700 * 2**20) if "FULL" in text else b""  # noqa: F841 - held until the end
    if "ABORT" in text:
        os.abort()
    if "SEGFAULT" in text:
        ctypes.string_at(0)
    if "HOG" in text:
        bytearray(10 * 2**30)
    if "RAISE" in text:
        raise KeyError("no such thing")
    if "PRINT" in text:
        os.write(1, b"x" * 100_000)
        os.write(2, b"x" * 30_000)
        sys.stdout.write("x" * 100_000)
    return [text]


def confess(text: str) -> list[str]:
    """What the child can see of the world."""
    return [
        f"environment {sorted(os.environ)}",
        f"modules {sorted(sys.modules)}",
        f"descriptors {sum(_is_open(number) for number in range(256))}",
    ]


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
