"""Files: everything but a few folders is out of reach, and nothing can be written (Linux 5.13 and later)."""

import ctypes
import os
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_GET_VERSION = 1
_PATH_BENEATH = 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3

# How many kinds of access to files each version of the interface knows; the last ones are of Linux 6.10.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_NEWEST_FILE_RIGHTS = 16
_NETWORK_SINCE, _NETWORK_RIGHTS = 4, 0b11
_SCOPES_SINCE, _SCOPES = 6, 0b11


class _Ruleset(ctypes.Structure):
    """What is forbidden unless a rule allows it: kinds of access to files, to TCP ports; kinds of reaching out."""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    """What is allowed below an open folder."""

    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version(libc: ctypes.CDLL) -> int:
    """The kernel's version of the interface; 0 where there is none or it is switched off."""
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _GET_VERSION)))


def restrict(libc: ctypes.CDLL, readable: Iterable[str]) -> bool:
    """Leave this process the right to read below `readable`, and no other to any file; False if the kernel cannot."""
    known = version(libc)
    if not known:
        return False
    ruleset = _Ruleset(
        (1 << _FILE_RIGHTS.get(known, _NEWEST_FILE_RIGHTS)) - 1,
        _NETWORK_RIGHTS if known >= _NETWORK_SINCE else 0,
        _SCOPES if known >= _SCOPES_SINCE else 0,
    )
    # An older kernel takes no longer structure than it knows, unless the rest is zeros.
    rules = libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(ctypes.sizeof(ruleset)), 0)
    if rules < 0:
        return False
    try:
        for path in readable:
            _allow_reading(libc, rules, path)
        return bool(libc.syscall(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow_reading(libc: ctypes.CDLL, rules: int, path: str) -> None:
    """Allow reading below a folder; one that is not there needs no rule."""
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
    except OSError:
        return
    rule = _Beneath(_READ_FILE | _READ_DIR, folder)
    libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(rule), 0)
    os.close(folder)
