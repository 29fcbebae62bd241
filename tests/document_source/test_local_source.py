"""A folder as source: the contract, and what folders have of their own."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from resources.document_source.document_ids import key_of, source_uri
from resources.document_source.document_source import DocumentSource, ReadError, SourceError
from resources.document_source.left_out import LeftOut, WhyLeftOut
from resources.document_source.local_source import LocalSource
from resources.document_source.own_files import OwnFiles
from resources.document_state.reasons import Reason
from tests.document_source.contract import DocumentSourceContract

PROJECT = Path(__file__).parents[2]
SECRET = b"secret"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path):
    """A folder beside the source, with a file that must not be seen."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.md").write_bytes(SECRET)
    return folder


@pytest.fixture
def source(root):
    return LocalSource("docs", root, "default")


def keys(source, prefix=b""):
    """The listed keys, sorted."""
    return sorted(key_of(listed.source_uri) for listed in source.list_objects(prefix))


def left_out(source, prefix=b"") -> dict[WhyLeftOut, tuple[int, str]]:
    """What a listing left out: how many, and what one of them is called, by why."""
    found = LeftOut()
    list(source.list_objects(prefix, found))
    return {why: (n, found.examples[why]) for why, n in found.counts.items()}


def reason_of(source, key: bytes) -> Reason:
    """Why a key cannot be read."""
    with pytest.raises(ReadError) as raised:
        source.read(source_uri("docs", key), 10**6)
    assert str(raised.value)
    return raised.value.reason


class TestLocalSource(DocumentSourceContract):
    @pytest.fixture
    def source(self, root) -> DocumentSource:
        """An empty folder."""
        return LocalSource("docs", root, "default")

    def put(self, source, key, content) -> None:
        """See DocumentSourceContract."""
        path = Path(os.fsdecode(os.path.join(os.fsencode(source.root), key)))  # noqa: PTH118
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def remove(self, source, key) -> None:
        """See DocumentSourceContract."""
        (source.root / os.fsdecode(key)).unlink()


class TestLinks:
    def test_link_to_a_file_inside(self, source, root):
        """A link to a file inside the folder is a document like any other."""
        (root / "a.md").write_bytes(b"text")
        (root / "link.md").symlink_to("a.md")
        assert keys(source) == [b"a.md", b"link.md"]
        assert source.read("docs:link.md", 10).content == b"text"

    @pytest.mark.parametrize("absolute", [True, False])
    def test_link_to_a_file_outside(self, source, root, outside, absolute):
        """A link that leads out is neither listed nor read."""
        target = outside / "secret.md"
        (root / "link.md").symlink_to(target if absolute else Path("../outside/secret.md"))
        assert keys(source) == []
        assert left_out(source) == left_out(source, b"link.md") == {WhyLeftOut.LINK_OUT: (1, "link.md")}
        assert reason_of(source, b"link.md") is Reason.ACCESS_DENIED

    def test_link_to_a_folder(self, source, root, outside):
        """Links to folders are not followed, wherever they lead: neither in listings nor by a prefix."""
        (root / "real").mkdir()
        (root / "real" / "a.md").write_bytes(b"text")
        (root / "in").symlink_to("real")
        (root / "out").symlink_to(outside)
        (root / "up").symlink_to("..")
        assert keys(source) == [b"real/a.md"]
        assert left_out(source)[WhyLeftOut.LINK_TO_FOLDER] == (1, "in")
        assert left_out(source)[WhyLeftOut.LINK_OUT][0] == 2
        for prefix in (b"out", b"out/", b"up/outside", b"out/secret.md", b"in", b"in/a.md"):
            with pytest.raises(SourceError, match="link"):
                keys(source, prefix)
        assert reason_of(source, b"out/secret.md") is Reason.ACCESS_DENIED

    @pytest.mark.parametrize("target", ["nothing", "loop.md", "a.md/below", "x" * 300])
    def test_link_that_leads_nowhere(self, source, root, target):
        """A broken link is no document and does not stop the listing."""
        (root / "a.md").write_bytes(b"")
        (root / "loop.md").symlink_to(target)
        assert keys(source) == [b"a.md"]
        assert left_out(source) == {WhyLeftOut.BROKEN_LINK: (1, "loop.md")}
        assert reason_of(source, b"loop.md") in (Reason.VANISHED, Reason.SOURCE_UNAVAILABLE)

    @pytest.mark.parametrize("swapped", ["folder", "folder/secret.md"])
    def test_link_that_comes_after_the_look(self, source, root, outside, monkeypatch, swapped):
        """What became a link out between being looked at and being opened is not followed."""
        (root / "folder").mkdir()
        (root / "folder" / "secret.md").write_bytes(b"harmless")
        look = os.path.realpath

        def look_then_swap(path):
            seen = look(path)
            if os.fsencode(path) == os.fsencode(root / "folder" / "secret.md") and not (root / swapped).is_symlink():
                (root / swapped).rename(root / "aside")
                (root / swapped).symlink_to(outside / Path(swapped).relative_to("folder"))
            return seen

        monkeypatch.setattr(os.path, "realpath", look_then_swap)
        assert reason_of(source, b"folder/secret.md") in {Reason.VANISHED, Reason.SOURCE_UNAVAILABLE}
        assert (root / "folder" / "secret.md").read_bytes() == SECRET

    def test_root_may_be_a_link(self, root, tmp_path):
        """A source whose folder is reached by a link is a source."""
        (root / "sub").mkdir()
        (root / "sub" / "a.md").write_bytes(b"text")
        (tmp_path / "link").symlink_to(root)
        linked = LocalSource("docs", tmp_path / "link", "default")
        assert keys(linked) == keys(linked, b"sub") == [b"sub/a.md"]
        assert linked.read("docs:sub/a.md", 10).content == b"text"


class TestEscapes:
    @pytest.mark.parametrize(
        "key",
        [
            b"../outside/secret.md",
            b"sub/../../outside/secret.md",
            b"../../../../../../../../etc/passwd",
            b"/etc/passwd",
            b"../root-of-another/x",
        ],
    )
    def test_key_that_climbs_out_is_not_read(self, source, root, outside, key):
        """No key reads a file outside the folder."""
        (root / "sub").mkdir()
        (root.parent / "root-of-another").mkdir()
        (root.parent / "root-of-another" / "x").write_bytes(SECRET)
        assert reason_of(source, key) is Reason.ACCESS_DENIED

    @pytest.mark.parametrize(
        "prefix", [b"..", b"../outside", b"../outside/secret.md", b"sub/../../outside", b"/etc", b"../root-of-another"]
    )
    def test_prefix_that_climbs_out_is_not_listed(self, source, root, outside, prefix):
        """No prefix lists what lies outside the folder; nothing is concluded from it."""
        (root / "sub").mkdir()
        (root.parent / "root-of-another").mkdir()
        with pytest.raises(SourceError, match="does not lie in"):
            keys(source, prefix)

    def test_same_content_after_moving_the_folder(self, source, root):
        """A folder that is moved keeps its URIs and versions."""
        (root / "a.md").write_bytes(b"text")
        before = list(source.list_objects())
        moved = root.rename(root.parent / "moved")
        assert list(LocalSource("docs", moved, "default").list_objects()) == before


class TestWhatIsLeftOut:
    def test_hidden_and_temporary_files(self, source, root):
        """Hidden files and folders and office lock files are left out at any level, and by any prefix."""
        for name in (".hidden.md", ".git/config.md", "sub/.x/y.md", "sub/~$open.docx", "sub/seen.md", "dot.in.name.md"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(b"")
        assert keys(source) == [b"dot.in.name.md", b"sub/seen.md"]
        assert left_out(source)[WhyLeftOut.HIDDEN][0] == 4
        assert left_out(source, b".git/config.md") == {WhyLeftOut.EXCLUDED: (1, ".git/config.md")}
        for prefix in (b".git", b".git/config.md", b".hidden.md", b"sub/.x", b"sub/~$open.docx"):
            assert keys(source, prefix) == []

    def test_patterns_of_the_configuration(self, root):
        """Patterns name files and folders at any level, case and all."""
        for name in ("a.log", "a.LOG", "node_modules/x.md", "sub/node_modules/x.md", "sub/b.md"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(b"")
        source = LocalSource("docs", root, "default", ["*.log", "node_modules"])
        assert keys(source) == [b"a.LOG", b"sub/b.md"]
        assert left_out(source)[WhyLeftOut.EXCLUDED][0] == 3

    def test_what_this_program_keeps(self, root):
        """Our own files and folders are no documents, nor is what is put beside them, by whatever link or prefix."""
        for name in (
            "data/dagster/run.db",
            "data/x.md",
            "s.duckdb",
            "s.duckdb.wal",
            "s.duckdb.lock.gate",
            "s.duckdb.md",
        ):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(b"")
        (root / "link.db").symlink_to("data/dagster/run.db")
        (root.parent / "way").symlink_to(root)
        own = OwnFiles([root.parent / "way/data/dagster", root / "s.duckdb", root / "not-made-yet.db"])
        source = LocalSource("docs", root.parent / "way", "default", (), own)
        assert keys(source) == [b"data/x.md", b"s.duckdb.md"]
        assert left_out(source)[WhyLeftOut.OWN][0] == 5
        for prefix in (b"data/dagster", b"data/dagster/run.db", b"s.duckdb.wal"):
            with pytest.raises(SourceError, match="kept by this program"):
                keys(source, prefix)

    def test_special_files(self, source, root):
        """Pipes and sockets are no documents."""
        os.mkfifo(root / "pipe.md")
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(root / "socket.md"))
            assert keys(source) == []
            assert left_out(source)[WhyLeftOut.SPECIAL_FILE][0] == 2

    def test_pipe_in_the_place_of_a_file(self, source, root):
        """A file that became a pipe, folder or device-like thing is gone, and reading it never waits."""
        os.mkfifo(root / "pipe.md")
        (root / "folder.md").mkdir()
        (root / "file").write_bytes(b"")
        started = time.monotonic()
        for key in (b"pipe.md", b"folder.md", b"file/below.md"):
            assert reason_of(source, key) is Reason.VANISHED
        assert time.monotonic() - started < 30


class TestFailingListings:
    def test_missing_root(self, tmp_path):
        """A folder that is not there is an error that names it, not an empty source."""
        with pytest.raises(SourceError, match="nowhere"):
            list(LocalSource("docs", tmp_path / "nowhere", "default").list_objects())

    def test_root_that_is_a_file(self, tmp_path):
        """A file is no folder."""
        (tmp_path / "file").write_text("")
        with pytest.raises(SourceError, match="does not exist"):
            list(LocalSource("docs", tmp_path / "file", "default").list_objects())

    def test_missing_prefix(self, source):
        """A prefix that is not there is an error: nothing may be concluded from it."""
        with pytest.raises(SourceError, match="'gone'"):
            keys(source, b"gone")

    def test_unreadable(self, source, root, tmp_path):
        """As an ordinary user: an unreadable folder fails the listing, an unreadable file only its own reading."""
        code = (
            "import sys; from pathlib import Path\n"
            "from resources.document_source.document_source import ReadError, SourceError\n"
            "from resources.document_source.local_source import LocalSource\n"
            "source = LocalSource('docs', Path(sys.argv[1]), 'default')\n"
            "try: print(sorted(item.source_uri for item in source.list_objects(sys.argv[2].encode())))\n"
            "except SourceError as error: print(error)\n"
            "try: source.read('docs:open/locked.md', 10)\n"
            "except ReadError as error: print(error.reason)\n"
        )
        (root / "open").mkdir()
        (root / "open" / "locked.md").write_bytes(b"x")
        (root / "open" / "locked.md").chmod(0)
        (root / "locked").mkdir()
        (root / "locked").chmod(0)
        temporary = os.environ.get("PYTEST_DEBUG_TEMPROOT", "/tmp")
        for folder in (tmp_path, *tmp_path.parents):
            if folder.stat().st_uid == os.getuid() and folder.is_relative_to(temporary):
                folder.chmod(folder.stat().st_mode | 0o055)
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []

        def run(prefix: str) -> list[str]:
            command = [*as_nobody, sys.executable, "-B", "-c", code, str(root), prefix]
            done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, check=False)
            if "Permission denied" in done.stderr or (as_nobody and done.returncode == 127):
                pytest.skip(f"cannot run as an ordinary user here: {done.stderr[-200:]}")
            return done.stdout.splitlines()

        everything, reason = run("")
        assert "cannot list 'locked'" in everything
        assert reason == "access_denied"
        assert run("open")[0] == "['docs:open/locked.md']"


class TestChanging:
    def test_changed_while_it_is_read(self, source, root):
        """While another keeps replacing a file's content, a reading is of one writing of it or refused."""
        path = root / "a.md"
        stop = threading.Event()
        states = [b"a" * 2_000_000, b"b" * 1_500_000]
        path.write_bytes(states[0])

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                path.write_bytes(states[number % 2])

        writer = threading.Thread(target=write)
        writer.start()
        outcomes = set()
        try:
            until = time.monotonic() + 30
            while time.monotonic() < until and len(outcomes) < 2:
                try:
                    read = source.read("docs:a.md", 10**7)
                except ReadError as error:
                    outcomes.add(error.reason)
                else:
                    assert len(set(read.content)) <= 1
                    assert read.content_version.startswith(f"{len(read.content)}-")
                    outcomes.add("whole")
        finally:
            stop.set()
            writer.join()
        assert Reason.CHANGED_WHILE_READING in outcomes
        assert outcomes <= {"whole", Reason.CHANGED_WHILE_READING}

    def test_folder_renamed_while_it_is_listed(self, source, root):
        """What lies in it has not gone: the listing has all of it, as it began."""
        (root / "sub").mkdir()
        for number in range(2_000):
            (root / "sub" / f"{number}.md").write_bytes(b"")
        listing = source.list_objects()
        next(listing)
        (root / "sub").rename(root / "aside")
        assert 1 + len(list(listing)) == 2_000

    def test_version_is_that_of_the_bytes(self, source, root):
        """The version read is the version listed, so what changed in between is seen by the next listing."""
        (root / "a.md").write_bytes(b"1")
        [listed] = source.list_objects()
        (root / "a.md").write_bytes(b"22")
        read = source.read("docs:a.md", 10)
        assert read.content_version != listed.content_version
        assert [item.content_version for item in source.list_objects()] == [read.content_version]

    def test_replaced_file_with_the_same_times(self, source, root):
        """Another file of the same size and time in the place is another version."""
        (root / "a.md").write_bytes(b"1")
        (root / "b.md").write_bytes(b"2")
        for name in ("a.md", "b.md"):
            os.utime(root / name, ns=(1, 1))
        [before] = source.list_objects(b"a.md")
        (root / "b.md").replace(root / "a.md")
        [after] = source.list_objects(b"a.md")
        assert before.content_version != after.content_version
