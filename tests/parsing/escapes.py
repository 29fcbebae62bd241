"""A splitter that tries to get out of the child: each attempt is a line `name: what came of it`."""

import ctypes
import errno
import mmap
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_SYS_IO_URING_SETUP = 425


def attempt(text: str) -> list[str]:
    """Try everything; `text` has a file that must not be read, a folder that must not be written, and open ports."""
    secret, folder, tcp, udp, unix = text.split("\n")
    tries = _on_files(secret, Path(folder)) | _on_network(int(tcp), int(udp), unix) | _on_processes()
    return [f"{name}: {_outcome(tried)}" for name, tried in tries.items()]


def _on_files(secret: str, folder: Path) -> dict[str, Callable[[], object]]:
    inside = Path(ctypes.__file__)
    return {
        "read a file outside": lambda: Path(secret).read_bytes(),
        "read the password file": lambda: Path("/etc/passwd").read_bytes(),
        "read the parent's environment": lambda: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
        "list the root": lambda: list(Path("/").iterdir()),
        "list the folder of the project": lambda: list(Path(__file__).parents[2].iterdir()),
        "make a file": lambda: (folder / "new").write_bytes(b"x"),
        "write to a module": lambda: inside.open("r+b"),
        "open to append": lambda: os.open(inside, os.O_RDONLY | os.O_APPEND),
        "make a folder": (folder / "new").mkdir,
        "remove a file": lambda: Path(secret).unlink(),
        "rename a file": lambda: Path(secret).rename(folder / "moved"),
        "link to a file": lambda: (folder / "link").symlink_to(secret),
        "change a mode": lambda: Path(secret).chmod(0o777),
        "change a time": lambda: os.utime(secret),
        "cut a file": lambda: os.truncate(secret, 0),
        "run from memory": lambda: os.memfd_create("x"),
    }


def _on_network(tcp: int, udp: int, unix: str) -> dict[str, Callable[[], object]]:
    return {
        "connect by TCP": lambda: socket.create_connection(("127.0.0.1", tcp), timeout=1),
        "connect by TCP over IPv6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM),
        "send by UDP": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", udp)),
        "connect to a unix socket": lambda: socket.socket(socket.AF_UNIX).connect(unix),
        "send raw packets": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
        "talk to the kernel": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        "make a pair of sockets": socket.socketpair,
        "look up a name": lambda: socket.getaddrinfo("example.org", 80),
        "use io_uring": lambda: _called(_SYS_IO_URING_SETUP, 1, None),
    }


def _on_processes() -> dict[str, Callable[[], object]]:
    parent = os.getppid()
    return {
        "run a program": lambda: subprocess.run(["/bin/true"], check=True),
        "become a program": lambda: os.execv("/bin/true", ["true"]),
        "fork": os.fork,
        "signal the parent": lambda: os.kill(parent, 0),
        "signal the parent's thread": lambda: _called(234, parent, parent, 0),
        "trace the parent": lambda: _returned(_LIBC.ptrace(16, parent, None, None)),
        "read the parent's memory": lambda: _returned(_LIBC.process_vm_readv(parent, None, 0, None, 0, 0)),
        "limit the parent": lambda: _returned(_LIBC.prlimit(parent, 7, ctypes.create_string_buffer(16), None)),
        "raise its own limit": lambda: _returned(_LIBC.prlimit(0, 9, ctypes.create_string_buffer(b"\xff" * 16), None)),
        "outlive the parent": lambda: _returned(_LIBC.prctl(_PR_SET_PDEATHSIG, 0, 0, 0, 0)),
        "slow down others": lambda: os.setpriority(os.PRIO_PROCESS, parent, 19),
        "a signal by way of a pipe": lambda: _fcntl_owner(parent),
        "a namespace of its own": lambda: _returned(_LIBC.unshare(0x10000000)),
        "mount": lambda: _returned(_LIBC.mount(b"none", b"/mnt", b"tmpfs", 0, None)),
        "more memory than allowed": lambda: mmap.mmap(-1, 64 * 2**30),
        "a signal to itself, which is allowed": lambda: signal.raise_signal(signal.SIGCHLD),
    }


def _fcntl_owner(parent: int) -> None:
    import fcntl

    fcntl.fcntl(0, fcntl.F_SETOWN, parent)


def _called(*arguments: object) -> int:
    return _returned(_LIBC.syscall(*arguments))


def _returned(code: int) -> int:
    if code < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return code


def _outcome(tried: Callable[[], object]) -> str:
    try:
        tried()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, f"refused ({error})")
    return "DONE"
