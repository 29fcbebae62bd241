"""The pool: children that hang, crash or grow cost their own document and nothing else."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest_assets.parsing import Chunking, ParsedDocument, ParseFailure, ParseLimits, ParserPool, parser_fingerprint
from ingest_assets.parsing import pool as parser_pool
from ingest_assets.parsing.frames import Outcome, Reply
from resources.document_state.reasons import Reason

HOSTILE = Chunking(splitter="tests.parsing.splitters:hostile")
LIMITS = ParseLimits(wall_seconds=1, memory_bytes=512 * 2**20)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pool() -> Iterator[ParserPool]:
    """Two children whose splitter does what the text says."""
    with ParserPool(2, LIMITS, HOSTILE) as made:
        yield made


def reason(outcome: ParsedDocument | ParseFailure) -> Reason | None:
    """The reason of a failure, None for a success."""
    return outcome.reason if isinstance(outcome, ParseFailure) else None


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("HANG", Reason.TIMED_OUT),
        ("ABORT", Reason.PARSER_CRASHED),
        ("SEGFAULT", Reason.PARSER_CRASHED),
        ("HOG", Reason.OUT_OF_MEMORY),
        ("RAISE", Reason.INTERNAL_ERROR),
        ("PRINT", None),
    ],
)
def test_nineteen_neighbours_survive(pool: ParserPool, word: str, expected: Reason | None) -> None:
    """One bad document among twenty, queued to the same children, is the only one that fails."""
    items = [(number, f"{number}.txt", b"fine" if number != 7 else word.encode()) for number in range(20)]
    outcomes = dict(pool.parse_many(items))
    assert reason(outcomes.pop(7)) is expected
    assert len(outcomes) == 19
    assert {reason(outcome) for outcome in outcomes.values()} == {None}


def test_a_library_that_aborts_for_want_of_memory() -> None:
    """One that dies with most of its memory in use needed more of it, and its verdict names the limit.

    In a program of its own: a child's peak is no less than its parent's, and after some thousand tests that is much.
    """
    code = """if __name__ == "__main__":
        from tests.parsing.test_pool import HOSTILE, ParseLimits, ParserPool
        with ParserPool(1, ParseLimits(), HOSTILE) as pool:
            outcome = pool.parse("x.txt", b"FULL, then ABORT")
        print(outcome.reason, outcome.detail)"""
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.startswith("out_of_memory ")
    assert "limits.memory_bytes is" in said


def test_many_bad_ones_at_once(pool: ParserPool) -> None:
    """Every document ends in its own verdict, however many die."""
    words = ["ABORT", "fine", "HOG", "fine", "fine", "ABORT", "ABORT", "fine", "RAISE", "fine"]
    outcomes = dict(pool.parse_many((number, "x.txt", word.encode()) for number, word in enumerate(words)))
    expected = {
        "ABORT": Reason.PARSER_CRASHED,
        "HOG": Reason.OUT_OF_MEMORY,
        "RAISE": Reason.INTERNAL_ERROR,
        "fine": None,
    }
    assert [reason(outcomes[number]) for number in range(len(words))] == [expected[word] for word in words]


def test_the_child_has_no_environment_and_loads_what_it_needs() -> None:
    """No variable reaches the child, no descriptor but its own, and text loads no reader of another format."""
    with ParserPool(1, LIMITS, Chunking(splitter="tests.parsing.splitters:confess")) as pool:
        outcome = pool.parse("x.txt", b"words")
    assert isinstance(outcome, ParsedDocument)
    environment, modules, descriptors = (piece.text for piece in outcome.pieces)
    assert environment in {"environment []", "environment ['LC_CTYPE']"}
    assert descriptors == "descriptors 6"  # three standard ones, two pipes, and its own statm
    for heavy in ("docx", "pptx", "pypdfium2", "selectolax", "dagster", "lxml"):
        assert f"'{heavy}'" not in modules


def test_a_text_child_is_small() -> None:
    """A child that reads text only stays under 60 MB."""
    with ParserPool(1, ParseLimits(), Chunking()) as pool:
        for _ in range(50):
            pool.parse("x.md", b"# head\n\nsome words\n" * 500)
        assert pool._feeder
        (worker,) = pool._feeder._workers
        status = Path(f"/proc/{worker._process.pid}/status").read_text(encoding="ascii")
    assert int(status.split("VmRSS:")[1].split()[0]) < 60 * 1024


def test_an_infinite_stream_is_read_lazily(pool: ParserPool) -> None:
    """Only a window is read ahead of the caller, and leaving early stops the reading."""
    read = 0

    def endless() -> Iterator[tuple[int, str, bytes]]:
        nonlocal read
        for read in itertools.count(1):
            yield read, "x.txt", b"fine"

    stream = pool.parse_many(endless())
    taken = [next(stream) for _ in range(10)]
    time.sleep(0.3)
    assert len(taken) == 10
    assert read <= 10 + 1024 + 1
    stream.close()
    stopped_at = read
    time.sleep(0.1)
    assert read <= stopped_at + 1


def test_big_documents_fill_the_window_by_bytes(pool: ParserPool) -> None:
    """At most 64 MiB are read ahead, however many documents that is."""
    read = 0

    def big() -> Iterator[tuple[int, str, bytes]]:
        nonlocal read
        for number in range(100):
            read += 1
            yield number, "x.png", b"\x89PNG" + bytes(20 * 2**20)

    stream = pool.parse_many(big())
    next(stream)
    time.sleep(0.5)
    assert read <= 6
    stream.close()


def test_what_the_stream_raises_reaches_the_caller(pool: ParserPool) -> None:
    """Outcomes of what came before are given first."""

    def broken() -> Iterator[tuple[int, str, bytes]]:
        yield 1, "x.txt", b"fine"
        raise LookupError("the source is gone")

    seen = []
    with pytest.raises(LookupError, match="the source is gone"):
        seen.extend(pool.parse_many(broken()))
    assert [key for key, _ in seen] == [1]


def test_children_work_while_the_caller_does_not_ask(pool: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool goes on by itself: everything is parsed before the second outcome is asked for."""
    parsed = threading.Semaphore(0)
    outcome_of = parser_pool._outcome

    def counted(reply: Reply) -> Outcome:
        parsed.release()
        return outcome_of(reply)

    monkeypatch.setattr(parser_pool, "_outcome", counted)
    stream = pool.parse_many((number, "x.txt", b"fine") for number in range(500))
    next(stream)
    assert all(parsed.acquire(timeout=30) for _ in range(500))
    assert len(list(stream)) == 499


def test_threads_may_share_a_pool(pool: ParserPool) -> None:
    """Each caller gets its own outcomes."""
    found: dict[int, set[tuple[int, int]]] = {}

    def work(who: int) -> None:
        found[who] = {key for key, _ in pool.parse_many(((who, n), "x.txt", b"fine") for n in range(50))}

    threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[who] == {(who, n) for n in range(50)} for who in range(4))


def test_names_are_harmless(pool: ParserPool) -> None:
    """A name is a label: no path, no encoding of it matters."""
    for name in ("../../etc/passwd", "a\nb.txt", "\udcff\udcfe.txt", "", "x" * 5000):
        outcome = pool.parse(name, b"fine")
        assert isinstance(outcome, ParsedDocument)
        assert 0 < len(outcome.title) <= 200
        assert "\n" not in outcome.title


def test_a_closed_pool_says_so() -> None:
    """Closing twice is fine; parsing afterwards is an error, not a hang."""
    pool = ParserPool(1, LIMITS, HOSTILE)
    assert reason(pool.parse("x.txt", b"fine")) is None
    pool.close()
    pool.close()
    assert not _children_alive(pool)
    with pytest.raises(RuntimeError, match="closed"):
        pool.parse("x.txt", b"fine")


def _children_alive(pool: ParserPool) -> bool:
    return pool._feeder is not None and pool._feeder.is_alive()


def test_a_splitter_that_does_not_exist_is_not_the_documents_fault() -> None:
    """The reason is one that may heal, and names the splitter."""
    with ParserPool(1, LIMITS, Chunking(splitter="no_such_module:cut")) as pool:
        outcome = pool.parse("x.txt", b"fine")
    assert isinstance(outcome, ParseFailure)
    assert outcome.reason is Reason.INTERNAL_ERROR
    assert "no_such_module" in outcome.detail


def test_a_users_splitter_gives_places() -> None:
    """Pieces of a user's function are found in the text."""
    with ParserPool(1, LIMITS, Chunking(splitter="tests.parsing.splitters:by_line")) as pool:
        outcome = pool.parse("x.txt", b"same\nsame\n\nother")
    assert isinstance(outcome, ParsedDocument)
    assert [(piece.text, piece.place.start) for piece in outcome.pieces] == [("same", 0), ("same", 5), ("other", 11)]


def test_children_that_do_not_start_are_no_verdict_on_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken installation ends in a reason that may heal, and at once instead of in a loop."""
    monkeypatch.setattr("ingest_assets.parsing.worker._BOOT", "raise SystemExit('no such interpreter')")
    with ParserPool(1, LIMITS, Chunking()) as pool:
        outcome = pool.parse("x.txt", b"fine")
    assert isinstance(outcome, ParseFailure)
    assert outcome.reason is Reason.INTERNAL_ERROR
    assert "no such interpreter" in outcome.detail


def test_children_die_with_their_parent() -> None:
    """A parent killed without warning leaves no child behind."""
    code = (
        "import os, time\nfrom ingest_assets.parsing import *\n"
        "pool = ParserPool(1, ParseLimits(), Chunking())\npool.parse('x.txt', b'x')\n"
        "print(pool._feeder._workers[0]._process.pid, flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and Path(f"/proc/{child}/exe").exists():
        time.sleep(0.02)
    with pytest.raises(OSError):
        Path(f"/proc/{child}/exe").readlink()


def test_a_child_killed_from_outside_costs_nothing() -> None:
    """An idle child that somebody killed is replaced."""
    with ParserPool(1, LIMITS, HOSTILE) as pool:
        assert reason(pool.parse("x.txt", b"fine")) is None
        (worker,) = pool._feeder._workers  # type: ignore[union-attr]
        os.kill(worker._process.pid, signal.SIGKILL)
        assert reason(pool.parse("x.txt", b"fine")) is None


def test_fingerprints_change_with_what_they_name() -> None:
    """Another size, overlap or splitter is another fingerprint; the parsers' names their versions."""
    seen = {
        Chunking().fingerprint,
        Chunking(size=500).fingerprint,
        Chunking(overlap=10).fingerprint,
        Chunking(splitter="tests.parsing.splitters:by_line").fingerprint,
    }
    assert len(seen) == 4
    assert "pypdfium2 " in parser_fingerprint()
    assert "unknown" not in Chunking(splitter="tests.parsing.splitters:by_line").fingerprint


def test_importing_the_package_loads_no_reader() -> None:
    """The parent of a run never loads a format's library."""
    code = "import sys, ingest_assets.parsing as p; p.parser_fingerprint(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert not {"docx", "pptx", "pypdfium2", "selectolax", "lxml", "dagster", "semantic_text_splitter"} & set(
        modules.split()
    )


@pytest.mark.parametrize("bad", [{"size": 0}, {"overlap": 1000}, {"splitter": "magic"}, {"splitter": "module:"}])
def test_a_chunking_that_cannot_be_is_refused(bad: dict[str, object]) -> None:
    """The mistake is found when the settings are made, not in a child."""
    with pytest.raises(ValueError):
        Chunking(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("raised", ["BaseException('gone')", "SystemExit(3)", "KeyboardInterrupt()"])
def test_what_is_no_exception_costs_no_child(monkeypatch: pytest.MonkeyPatch, raised: str) -> None:
    """A library that raises what is no `Exception`, as Rust's panics are, has found a malformed document."""
    boot = (
        "import sys; sys.path[:] = sys.argv[1:]\n"
        "from ingest_assets.parsing.formats import plain\n"
        "def read(source, text):\n"
        f"    raise {raised}\n"
        "plain.read = read\n"
        "from ingest_assets.parsing.child import main; main()"
    )
    monkeypatch.setattr("ingest_assets.parsing.worker._BOOT", boot)
    with ParserPool(1, LIMITS, Chunking()) as pool:
        assert reason(pool.parse("x.txt", b"words")) is Reason.MALFORMED
        (worker,) = pool._feeder._workers  # type: ignore[union-attr]
        assert worker.done == 1
