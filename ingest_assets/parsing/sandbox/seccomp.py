"""System calls: the few that reading a document needs, and no other exists for this process any more.

A list of what is allowed, not of what is forbidden: a call that a kernel learns later is forbidden by itself. Others
fail with ENOSYS, as on an old kernel, so that a library falls back instead of being killed.
"""

import ctypes
import errno
import platform
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_GET_ACTION_AVAILABLE = 2
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000

# Classic BPF: load a word of the call, jump if equal, jump if any bit is set, return.
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENTS = 0, 4, 16


class _Machine(NamedTuple):
    """Which column of the tables it is, how the kernel calls it, and the number of seccomp itself."""

    column: int
    architecture: int
    seccomp: int


_MACHINES = {"x86_64": _Machine(0, 0xC000003E, 317), "aarch64": _Machine(1, 0xC00000B7, 277)}

_Numbers = tuple[int, int | None]  # on x86_64 and on aarch64, where some calls do not exist
_ALLOWED: dict[str, _Numbers] = {
    # pipes, and files for reading
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "preadv": (295, 69), "close": (3, 57), "close_range": (436, 436), "dup": (32, 23),
    "lseek": (8, 62), "fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291), "getdents64": (217, 61),
    "readlinkat": (267, 78), "faccessat": (269, 48), "faccessat2": (439, 439), "access": (21, None),
    "stat": (4, None), "lstat": (6, None), "readlink": (89, None), "getdents": (78, None), "getcwd": (79, 17),
    "fadvise64": (221, 223), "poll": (7, None), "ppoll": (271, 73), "eventfd2": (290, 19),
    # memory
    "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216), "madvise": (28, 233),
    "brk": (12, 214), "mincore": (27, 232), "membarrier": (324, 283),
    # threads
    "futex": (202, 98), "set_robust_list": (273, 99), "get_robust_list": (274, 100), "set_tid_address": (218, 96),
    "rseq": (334, 293), "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "gettid": (186, 178),
    "exit": (60, 93), "exit_group": (231, 94), "arch_prctl": (158, None),
    # signals
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132), "restart_syscall": (219, 128),
    # time
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "nanosleep": (35, 101),
    "gettimeofday": (96, 169), "times": (100, 153), "time": (201, None),
    # what this process and its machine are
    "getpid": (39, 172), "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176),
    "getegid": (108, 177), "getrusage": (98, 165), "uname": (63, 160), "sysinfo": (99, 179), "getrandom": (318, 278),
    "getcpu": (309, 168),
}  # fmt: skip
_OPEN: _Numbers = (2, None)
_OPENAT: _Numbers = (257, 56)
_FCNTL: _Numbers = (72, 25)
_CLONE: _Numbers = (56, 220)
_TGKILL: _Numbers = (234, 131)
_PRLIMIT: _Numbers = (302, 261)

_WRITES = 0o3 | 0o100 | 0o1000 | 0o2000 | 0o20000000  # access mode, O_CREAT, O_TRUNC, O_APPEND, O_TMPFILE
_THREAD = 0x10000
_NEW_NAMESPACE = 0x7E020000
# Duplicating a descriptor and its flags; not F_SETOWN, which sends a signal to any process of this user.
_HARMLESS_FCNTL = (0, 1, 2, 3, 4, 1030)

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def is_available(libc: ctypes.CDLL) -> bool:
    """Whether the kernel has filters, and we know its numbers."""
    machine = _MACHINES.get(platform.machine())
    if machine is None or sys.maxsize < 2**32:
        return False
    action = ctypes.c_uint32(_ERRNO)
    return bool(libc.syscall(machine.seccomp, _GET_ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0)


def restrict(libc: ctypes.CDLL, process: int) -> bool:
    """Leave this process the calls above; False if the kernel cannot.

    Args:
        libc: The C library.
        process: This process's id: a signal may go to itself, as `abort` sends one, and to no other.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None or not is_available(libc):
        return False
    instructions = list(_filter(machine, process))
    raw = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    buffer = ctypes.create_string_buffer(raw, len(raw))
    program = _Program(len(instructions), ctypes.addressof(buffer))
    return bool(libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) == 0)


def _filter(machine: _Machine, process: int) -> Iterator[_Instruction]:
    refuse = (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)
    allow = (_RETURN, 0, 0, _ALLOW)
    yield _LOAD, 0, 0, _AT_ARCHITECTURE
    yield _EQUAL, 1, 0, machine.architecture
    yield refuse
    yield _LOAD, 0, 0, _AT_NUMBER
    for numbers in _ALLOWED.values():
        number = numbers[machine.column]
        if number is not None:
            yield _EQUAL, 0, 1, number
            yield allow
    for numbers, checks in _conditional(process):
        number = numbers[machine.column]
        if number is not None:
            yield _EQUAL, 0, len(checks) + 1, number
            yield from checks
            yield refuse
    yield refuse


def _conditional(process: int) -> Iterator[tuple[_Numbers, list[_Instruction]]]:
    """Calls that are allowed with some arguments: each with checks that return what is allowed, and fall through."""
    allow = (_RETURN, 0, 0, _ALLOW)
    yield _OPEN, [_argument(1), (_ANY_BIT, 1, 0, _WRITES), allow]
    yield _OPENAT, [_argument(2), (_ANY_BIT, 1, 0, _WRITES), allow]
    yield _CLONE, [_argument(0), (_ANY_BIT, 2, 0, _NEW_NAMESPACE), (_ANY_BIT, 0, 1, _THREAD), allow]
    yield _TGKILL, [_argument(0), (_EQUAL, 0, 1, process), allow]
    yield _PRLIMIT, [_argument(2), (_EQUAL, 0, 3, 0), _argument(2, high=True), (_EQUAL, 0, 1, 0), allow]
    checks = [_argument(1)]
    for command in _HARMLESS_FCNTL:
        checks += [(_EQUAL, 0, 1, command), allow]
    yield _FCNTL, checks


def _argument(index: int, *, high: bool = False) -> _Instruction:
    """Load a half of an argument; both machines are little-endian."""
    return _LOAD, 0, 0, _AT_ARGUMENTS + 8 * index + (4 if high else 0)
