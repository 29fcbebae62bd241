"""What a child that was taken over can still do: nothing. Tried from inside the real child."""

import os
import platform
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ingest_assets.parsing import Chunking, ParsedDocument, ParseLimits, ParserPool, sandbox
from ingest_assets.parsing.result import Unpacked
from ingest_assets.parsing.sandbox import landlock, seccomp

ROOT = Path(__file__).resolve().parents[2]
confined = pytest.mark.skipif(bool(sandbox.missing()), reason="this kernel cannot confine a process")
ALLOWED = {"a signal to itself, which is allowed"}


def in_child(splitter: str, content: str) -> list[str]:
    """The pieces that a splitter makes of a text, in a child of its own."""
    with ParserPool(1, ParseLimits(), Chunking(splitter=splitter)) as pool:
        outcome = pool.parse("x.txt", content.encode())
    assert isinstance(outcome, ParsedDocument), outcome
    return [piece.text for piece in outcome.pieces]


@confined
def test_no_way_out(tmp_path: Path) -> None:
    """From inside the child: no connection, no file outside, nothing written, no program, no other process."""
    secret, priority = tmp_path / "secret", os.getpriority(os.PRIO_PROCESS, 0)
    secret.write_text("secret")
    (tmp_path / "folder").mkdir()
    tcp, udp, unix = socket.socket(), socket.socket(type=socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)
    with tcp, udp, unix:
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        unix.bind(str(tmp_path / "socket"))
        tcp.listen()
        unix.listen()
        udp.settimeout(0)
        text = f"{secret}\n{tmp_path / 'folder'}\n{tcp.getsockname()[1]}\n{udp.getsockname()[1]}\n{tmp_path / 'socket'}"
        outcomes = dict(line.split(": ", 1) for line in in_child("tests.parsing.escapes:attempt", text))
        with pytest.raises(BlockingIOError):
            udp.recv(1)
    assert len(outcomes) > 35
    assert {name for name, outcome in outcomes.items() if outcome == "DONE"} == ALLOWED
    assert secret.read_text() == "secret"
    assert list((tmp_path / "folder").iterdir()) == []
    assert os.getpriority(os.PRIO_PROCESS, 0) == priority


@confined
@pytest.mark.parametrize("layer", ["landlock", "seccomp"])
def test_each_layer_alone(layer: str, tmp_path: Path) -> None:
    """Landlock alone refuses files, seccomp alone sockets, programs and writing: neither relies on the other."""
    code = f"""
import ctypes, os, socket, sys
from ingest_assets.parsing.result import Unpacked
from ingest_assets.parsing.sandbox import landlock, seccomp
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
assert landlock.restrict(libc, [sys.base_prefix]) if {layer!r} == "landlock" else seccomp.restrict(libc, os.getpid())
def refused(tried):
    try:
        tried()
    except OSError:
        return True
    return False
print(refused(lambda: os.open("/etc/passwd", os.O_RDONLY)), refused(lambda: os.open({str(tmp_path)!r}, os.O_RDONLY)),
    refused(lambda: os.open({str(tmp_path / "new")!r}, os.O_CREAT | os.O_WRONLY)),
    refused(lambda: socket.socket(type=socket.SOCK_DGRAM)), refused(lambda: os.fork() or os._exit(0)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    expected = {"landlock": "True True True False False", "seccomp": "False False True True True"}
    assert done.stdout.split("\n")[0] == expected[layer]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of another machine")
def test_a_call_by_another_door_is_refused() -> None:
    """The 32-bit numbers of the same machine (x32) are not the list's, and are refused like any unknown call."""
    code = """
import ctypes, os
from ingest_assets.parsing.sandbox import seccomp
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
assert seccomp.restrict(libc, os.getpid())
print(libc.syscall(0x40000000 + 41, 2, 1, 0), libc.syscall(9999), libc.syscall(39) == os.getpid())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "-1 -1 True\n"


def test_a_mail_needs_nothing_of_the_machine() -> None:
    """An attachment without a name is called by its type, though the machine's table of types is out of reach."""
    mail = b"From: a@b\nTo: c@d\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nwords\n--x\n"
    mail += b"Content-Type: application/pdf\nContent-Disposition: attachment\n\n%PDF-1.7\n--x--\n"
    with ParserPool(1, ParseLimits(), Chunking()) as pool:
        read = pool.parse("mail.txt", mail)
        opened = pool.unpack("mail.eml", mail, 0)
    assert isinstance(read, ParsedDocument), read
    assert read.warnings[0].startswith("Its attachments are not read.")
    assert isinstance(opened, Unpacked), opened
    assert [member.name for member in opened.members] == ["attachment.pdf"]


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without one of them names what it cannot take away, and a child says the same."""
    sandbox.missing.cache_clear()
    monkeypatch.setattr(landlock, "version", lambda _: 0)
    monkeypatch.setattr(seccomp, "is_available", lambda _: False)
    try:
        assert [entry.split("(")[1] for entry in sandbox.missing()] == ["Landlock)", "seccomp)"]
    finally:
        sandbox.missing.cache_clear()


def test_a_warning_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Children that could not be confined work all the same, and one warning says what is missing."""
    boot = (
        "import sys; sys.path[:] = sys.argv[1:]; from ingest_assets.parsing.sandbox import landlock;"
        "landlock.version = lambda _: 0; from ingest_assets.parsing.child import main; main()"
    )
    monkeypatch.setattr("ingest_assets.parsing.worker._BOOT", boot)
    from ingest_assets.parsing.worker import _tell_what_is_missing

    _tell_what_is_missing.cache_clear()
    with ParserPool(2, ParseLimits(), Chunking()) as pool:
        outcomes = dict(pool.parse_many((number, "x.txt", b"words") for number in range(20)))
    assert all(isinstance(outcome, ParsedDocument) for outcome in outcomes.values())
    (warning,) = [text for record in caplog.records if "cannot take away" in (text := record.getMessage())]
    assert "(Landlock)" in warning
    assert "(seccomp)" not in warning


def test_status_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ingest status` names what this machine cannot take away, for people and for programs."""
    from ingest_assets.cli import inspect
    from ingest_assets.settings import Settings

    said: list[str] = []
    monkeypatch.setattr(inspect, "say", said.append)
    monkeypatch.setattr(sandbox, "missing", lambda: ("files (Landlock)",))
    counts = inspect._Counts([])
    inspect._print_status(counts, Settings())
    assert "This machine cannot take away from parsers: files (Landlock). See docs/security.md." in said
    assert counts.fields()["parsers_not_confined"] == ["files (Landlock)"]
