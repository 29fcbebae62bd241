"""Compressed files and mailboxes: what they hold is given whole and under its name, and no header is believed."""

import bz2
import gzip
import io
import lzma
import tarfile
import zlib

import pytest

from ingest_assets.parsing import Chunking, ParseFailure, ParseLimits, ParserPool
from ingest_assets.parsing.result import Unpacked
from ingest_assets.parsing.unpack import unpack
from resources.document_state.reasons import Reason

from .test_formats import parsed, refused

COMPRESS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
SUFFIXES = sorted(COMPRESS)


def members(filename: str, content: bytes) -> list[tuple[str, bytes]]:
    """Names and bytes of what lies in a container."""
    found = unpack(filename, content, 0, ParseLimits())
    assert isinstance(found, Unpacked), found
    return [(member.name, member.content) for member in found.members]


def reason_of(filename: str, content: bytes, **limits: int) -> Reason:
    """Why a container cannot be opened; its document, parsed, says the same."""
    found = unpack(filename, content, 0, ParseLimits(**limits))
    assert isinstance(found, ParseFailure)
    assert refused(filename, content, **limits) is found.reason
    return found.reason


def tarred() -> bytes:
    """A tar of one file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        entry = tarfile.TarInfo("a/b.md")
        entry.size = 5
        file.addfile(entry, io.BytesIO(b"words"))
    return out.getvalue()


@pytest.mark.parametrize("suffix", SUFFIXES)
class TestCompressed:
    def test_what_it_holds(self, suffix: str) -> None:
        """One file, called as the compressed one without its suffix, from one stream or several; or a tar's members."""
        compress = COMPRESS[suffix]
        assert members(f"log.txt.{suffix}", compress(b"some ") + compress(b"words")) == [("log.txt", b"some words")]
        assert members(f"papers.tar.{suffix}", compress(tarred())) == [("a/b.md", b"words")]
        assert refused(f"x.{suffix}", compress(b"words")) is Reason.ARCHIVE

    def test_bombs(self, suffix: str) -> None:
        """Bytes are counted while they come out."""
        bomb = COMPRESS[suffix](bytes(3_000_000))
        assert reason_of(f"x.{suffix}", bomb, inflated_bytes=2_000_000) is Reason.INFLATES_TOO_MUCH

    def test_damaged(self, suffix: str) -> None:
        """One that is cut off, or changed on its way, is malformed: no half of it is taken for the whole."""
        whole = COMPRESS[suffix](bytes(range(256)) * 500)
        assert reason_of(f"x.{suffix}", whole[:-5]) is Reason.MALFORMED
        middle = len(whole) // 2
        assert reason_of(f"x.{suffix}", whole[:middle] + b"\0\0\0\0" + whole[middle + 4 :]) is Reason.MALFORMED


def test_a_dictionary_larger_than_memory() -> None:
    """An xz file may ask for 4 GiB before it gives a byte: that is the child's memory, and ends the document."""
    content = bytearray(lzma.compress(b"words", check=lzma.CHECK_NONE))
    header = slice(12, 12 + 4 * (content[12] + 1))  # after the stream's own; its last four bytes are a checksum
    at = content.index(b"\x21\x01", header.start) + 2  # LZMA2, with one byte that says how large its dictionary is
    content[at] = 40
    content[header.stop - 4 : header.stop] = zlib.crc32(content[header.start : header.stop - 4]).to_bytes(4, "little")
    with ParserPool(1, ParseLimits(), Chunking()) as pool:
        outcome = pool.parse("x.xz", bytes(content))
    assert isinstance(outcome, ParseFailure)
    assert outcome.reason is Reason.OUT_OF_MEMORY


def test_text_that_begins_like_a_compressed_file() -> None:
    """Letters alone make no archive."""
    assert parsed("x.txt", "BZh is how they begin.").media_type == "text/plain"


FIRST = (
    "From ann@example.org Mon Jan  1 10:00:00 2024\nMessage-ID: <1@x>\nSubject: One\n\nFirst words.\n\n>From here on.\n"
)
SECOND = "From bob@example.org Mon Jan  1 11:00:00 2024\r\nSubject: Two\r\n\r\nFrom now on, no message.\r\n\r\n"
THIRD = "From ann@example.org Mon Jan  1 12:00:00 2024\nMessage-ID: <3@x>\nSubject: Three\n\nFrom: nobody\n"


class TestMailbox:
    def test_messages(self) -> None:
        """Each message is a mail of its own; only a line after an empty one, with headers after it, begins one."""
        found = members("a.mbox", (FIRST + "\n" + SECOND + THIRD).encode())
        assert [content.partition(b"Subject: ")[2].split()[0] for _, content in found] == [b"One", b"Two", b"Three"]
        assert b"\nFrom here on." in found[0][1]
        assert all(name.endswith(".eml") for name, _ in found)
        assert refused("a.mbox", FIRST) is Reason.ARCHIVE

    def test_names_stay(self) -> None:
        """A message is called the same when another was taken out, and when its status was written into it."""
        names = dict.fromkeys(name for name, _ in members("a.mbox", (FIRST + "\n" + THIRD).encode()))
        assert len(names) == 2
        [(name, _)] = members("a.mbox", THIRD.replace("Subject", "Status: RO\nSubject").encode())
        assert name == list(names)[1]

    def test_too_many(self) -> None:
        """Messages are members, and counted as such."""
        assert reason_of("a.mbox", (FIRST + "\n").encode() * 5, archive_entries=4) is Reason.TOO_LARGE

    @pytest.mark.parametrize("content", ["From the editor\nwords", "No mailbox.", "\n" + FIRST])
    def test_what_is_none(self, content: str) -> None:
        """A text called .mbox is read as text; as a container it is damaged, since it may come back as a mailbox."""
        assert parsed("a.mbox", content).media_type in {"text/plain", "message/rfc822"}
        found = unpack("a.mbox", content.encode(), 0, ParseLimits())
        assert isinstance(found, ParseFailure)
        assert found.reason is Reason.MALFORMED
