"""What lies in containers, listed and read through the process that opens them."""

import bz2
import io
import os
import re
import tarfile
import warnings
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest

from ingest_assets.parsing import ConfinedUnpacker, ParseLimits
from resources.document_source.document_source import ReadError
from resources.document_source.left_out import LeftOut
from resources.document_source.local_source import LocalSource
from resources.document_source.member_source import MemberSource
from resources.document_source.member_tables import MemberTables
from resources.document_source.member_tree import TreeLimits
from resources.document_source.unpacker import Unpacker
from resources.document_state.reasons import Reason
from tests.document_source.contract import DocumentSourceContract

LIMITS = ParseLimits(inflated_bytes=2_000_000, archive_entries=50)


class Hints(dict):
    """Hints in memory."""

    def write_hint(self, name, value) -> None:
        """See MemberTables."""
        self[name] = value

    def read_hint(self, name) -> bytes | None:
        """See MemberTables."""
        return self.get(name)


class Counting(Unpacker):
    """Counts what is opened."""

    def __init__(self, inner: Unpacker) -> None:
        self.inner = inner
        self.opened: list[str] = []

    def unpack(self, filename, content):
        """See Unpacker."""
        self.opened.append(filename)
        return self.inner.unpack(filename, content)


@pytest.fixture(scope="module")
def confined():
    unpacker = ConfinedUnpacker(LIMITS)
    yield unpacker
    unpacker.close()


@pytest.fixture
def unpacker(confined):
    return Counting(confined)


@pytest.fixture
def hints():
    return Hints()


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def opened(root: Path, unpacker: Unpacker, hints: Hints, made_under: str = "1") -> MemberSource:
    return MemberSource(
        LocalSource("docs", root, "default"),
        unpacker,
        MemberTables(hints, "docs", "default", made_under),
        TreeLimits(LIMITS.nesting, LIMITS.archive_entries, LIMITS.inflated_bytes),
        10_000_000,
        (".*", "~$*"),
    )


@pytest.fixture
def source(root, unpacker, hints):
    return opened(root, unpacker, hints)


def zipped(*files: tuple[str, bytes]) -> bytes:
    """A zip of files, in order, doubles and all."""
    out = io.BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(out, "w") as file:
        for name, content in files:
            file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def tarred(*files: tuple[str, bytes], mode: str = "w") -> bytes:
    """A tar of files, with a link and a folder that nobody follows."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as file:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
        for kind in (tarfile.SYMTYPE, tarfile.DIRTYPE):
            entry = tarfile.TarInfo(f"kind-{kind.decode()}")
            entry.type, entry.linkname = kind, "/etc/passwd"
            file.addfile(entry)
    return out.getvalue()


def mail(*attached: tuple[str, bytes]) -> bytes:
    """A mail with attachments."""
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "Papers", "a@example.org", "b@example.org"
    message.set_content("Here are the papers.")
    for name, content in attached:
        message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


def encrypted(content: bytes) -> bytes:
    """A zip whose members all say that they are encrypted."""
    changed = bytearray(content)
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(magic), content):
            changed[found.start() + offset] |= 1
    return bytes(changed)


def uris(source: MemberSource, prefix: bytes = b"") -> list[str]:
    """What is listed, without the source's name."""
    return [item.source_uri.removeprefix("docs:") for item in source.list_objects(prefix)]


def marked(source: MemberSource) -> list[str]:
    """Containers that could not be listed."""
    return [item.source_uri.removeprefix("docs:") for item in source.list_objects() if item.is_unlisted]


def reason_of(source: MemberSource, key: str) -> Reason:
    """Why a member cannot be read."""
    with pytest.raises(ReadError) as raised:
        source.read(f"docs:{key}", 10**6)
    assert str(raised.value)
    return raised.value.reason


class TestMemberSource(DocumentSourceContract):
    @pytest.fixture
    def source(self, root, unpacker, hints) -> MemberSource:
        """An empty folder."""
        return opened(root, unpacker, hints)

    def put(self, source, key, content) -> None:
        """See DocumentSourceContract."""
        path = Path(os.fsdecode(os.path.join(os.fsencode(source.inner.root), key)))  # noqa: PTH118
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def remove(self, source, key) -> None:
        """See DocumentSourceContract."""
        (source.inner.root / os.fsdecode(key)).unlink()


def test_every_kind(source, root):
    """Zip, tar, compressed file, mail, mailbox: what lies in them is listed after them, and read as it was put in."""
    (root / "a.zip").write_bytes(zipped(("x/ä 1.md", b"one"), (".hidden", b""), ("empty/", b"")))
    (root / "b.tar").write_bytes(tarred(("x.md", b"two")))
    (root / "c.tar.gz").write_bytes(tarred(("x.md", b"three"), mode="w:gz"))
    (root / "d.eml").write_bytes(mail(("x.md", b"four")))
    (root / "e.txz").write_bytes(tarred(("x.md", b"five"), mode="w:xz"))
    (root / "f.md.bz2").write_bytes(bz2.compress(b"six"))
    (root / "g.mbox").write_bytes(b"From a@x Mon Jan  1 10:00:00 2024\n" + mail(("x.md", b"seven")))
    listed = [re.sub("message-[0-9a-f]{16}", "message", uri) for uri in uris(source)]
    assert sorted(listed) == [
        "a.zip", "a.zip!/x/%C3%A4%201.md", "b.tar", "b.tar!/x.md", "c.tar.gz", "c.tar.gz!/x.md", "d.eml", "d.eml!/x.md",
        "e.txz", "e.txz!/x.md", "f.md.bz2", "f.md.bz2!/f.md", "g.mbox", "g.mbox!/message.eml",
        "g.mbox!/message.eml!/x.md",
    ]  # fmt: skip
    assert marked(source) == []
    left_out = LeftOut()
    assert len(list(source.list_objects(left_out=left_out))) == len(listed)
    assert (left_out.counts, left_out.examples) == ({"hidden": 1}, {"hidden": "a.zip!/.hidden"})
    assert source.read("docs:a.zip!/x/%C3%A4%201.md", 100).content == b"one"
    for item in source.list_objects():
        read = source.read(item.source_uri, 10_000_000)
        assert (read.content_version, len(read.content)) == (item.content_version, item.size)


def test_containers_in_containers(source, root):
    """They are opened three deep; a fourth is listed, and ends as too deep."""
    content = zipped(("deep.md", b"deep"))
    for level in range(3):
        content = zipped((f"{level}.zip", content))
    (root / "a.zip").write_bytes(content)
    assert uris(source) == ["a.zip", "a.zip!/2.zip", "a.zip!/2.zip!/1.zip", "a.zip!/2.zip!/1.zip!/0.zip"]
    assert marked(source) == ["a.zip!/2.zip!/1.zip!/0.zip"]
    assert reason_of(source, "a.zip!/2.zip!/1.zip!/0.zip") is Reason.TOO_DEEP


def test_hostile_names(source, root):
    """Names that lead out, and doubled ones, become names of ours; nothing outside is read or written."""
    (root / "a.zip").write_bytes(zipped(("../../b.md", b"1"), ("/etc/passwd", b"2"), ("c.md", b"3"), ("c.md", b"4")))
    assert uris(source)[1:] == [f"a.zip!/{name}" for name in ("member-1.md", "member-2", "c.md", "member-4.md")]
    assert source.read("docs:a.zip!/member-4.md", 10).content == b"4"
    assert sorted(path.name for path in root.parent.rglob("*")) == ["a.zip", "root"]
    assert reason_of(source, "a.zip!/../secret.md") is Reason.VANISHED


def test_office_files_are_no_containers(source, root):
    """A document keeps being one, also if somebody calls it .zip."""
    (root / "a.docx").write_bytes(zipped(("[Content_Types].xml", b""), ("x.md", b"")))
    (root / "b.zip").write_bytes(zipped(("mimetype", b"application/epub+zip"), ("x.md", b"")))
    assert sorted(uris(source)) == ["a.docx", "b.zip"]


def test_encrypted_members(source, root):
    """An encrypted member is listed, and says that it needs a password."""
    (root / "a.zip").write_bytes(encrypted(zipped(("x.md", b"one"))))
    assert uris(source) == ["a.zip", "a.zip!/x.md"]
    assert reason_of(source, "a.zip!/x.md") is Reason.PASSWORD_REQUIRED


@pytest.mark.parametrize(
    "content",
    [
        zipped(*((f"{n}.md", b"") for n in range(51))),
        zipped(*((f"{n}.md", bytes(1_000_000)) for n in range(3))),
        zipped(("x.md", b"one"))[:-30],
        tarred(("x.md", bytes(5000)), mode="w:gz")[:-30],
        tarred(("x.md", bytes(5000)))[:4000],
        tarred(*((f"{n}.md", bytes(600)) for n in range(4)))[:4608],
        b"\x00\x01\x02 no archive",
        b"",
    ],
    ids=["entries", "bomb", "cut zip", "cut gzip", "cut tar", "tar without end", "noise", "empty"],
)
def test_what_cannot_be_opened(source, root, content):
    """It is listed and marked, so that nothing in it is taken to have vanished, and stops nobody else."""
    (root / "a.zip").write_bytes(content)
    (root / "b.zip").write_bytes(zipped(("x.md", b"one")))
    assert sorted(uris(source)) == ["a.zip", "b.zip", "b.zip!/x.md"]
    assert marked(source) == ["a.zip"]


def test_limits_count_all_that_lies_within(source, root):
    """Many small archives in one are together what one may be: what is over it is marked and says why."""
    inner = zipped(("x.md", bytes(900_000)))
    (root / "a.zip").write_bytes(zipped(*((f"{n}.zip", inner) for n in range(4))))
    assert marked(source) == ["a.zip!/2.zip", "a.zip!/3.zip"]
    assert reason_of(source, "a.zip!/3.zip") is Reason.INFLATES_TOO_MUCH


def test_an_unchanged_container_is_opened_once(source, root, unpacker, hints):
    """What lies in it is remembered from listing to listing; under other limits it is looked at again."""
    (root / "a.zip").write_bytes(zipped(("x.md", b"one")))
    (root / "broken.zip").write_bytes(b"PK\x03\x04")
    before = list(source.list_objects())
    assert sorted(unpacker.opened) == ["a.zip", "broken.zip"]
    assert list(opened(root, unpacker, hints).list_objects()) == before
    assert len(unpacker.opened) == 2
    assert list(opened(root, unpacker, hints, "2").list_objects()) == before
    assert len(unpacker.opened) == 4
    hints.clear()
    assert list(opened(root, unpacker, hints).list_objects()) == before


def test_only_a_changed_member_changes(source, root):
    """A container packed anew changes itself and what is different in it; reading gives what it has now."""
    (root / "a.zip").write_bytes(zipped(("x.md", b"one"), ("y.md", b"same")))
    before = {item.source_uri: item.content_version for item in source.list_objects()}
    assert source.read("docs:a.zip!/x.md", 10).content == b"one"
    (root / "a.zip").write_bytes(zipped(("x.md", b"other"), ("y.md", b"same")))
    assert source.read("docs:a.zip!/x.md", 10).content == b"other"
    after = {item.source_uri: item.content_version for item in source.list_objects()}
    assert [uri for uri in after if before[uri] == after[uri]] == ["docs:a.zip!/y.md"]


def test_members_of_one_container_open_it_once(source, root, unpacker):
    """Reading all members of a container takes it apart once."""
    (root / "a.zip").write_bytes(zipped(*((f"{n}.md", b"x") for n in range(20))))
    for uri in uris(source)[1:]:
        source.read(f"docs:{uri}", 10)
    assert unpacker.opened == ["a.zip"]


def test_a_part_of_the_source(source, root):
    """A prefix lists a container with its members, and forgets nothing of the others."""
    for name in ("a.zip", "b.zip"):
        (root / name).write_bytes(zipped(("x.md", b"one")))
    uris(source)
    assert uris(source, b"a.zip") == ["a.zip", "a.zip!/x.md"]
    assert sorted(source._tables.read()) == ["docs:a.zip", "docs:b.zip"]
    (root / "a.zip").unlink()
    assert uris(source) == ["b.zip", "b.zip!/x.md"]
    assert reason_of(source, "a.zip!/x.md") is Reason.VANISHED
