"""Whatever a file is called, it is a document with a name of ours; and no name leads out of its source."""

import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources.document_source.document_ids import MAX_ID_BYTES, document_id, key_of, shown_key, source_uri
from resources.document_source.document_source import ReadError, SourceError
from resources.document_source.local_source import LocalSource
from resources.document_state.reasons import Reason

SECRET = b"secret"
NASTY = [
    b"a\nb.txt",
    b"a,b.txt",
    b"a...b",
    b"a|b",
    b"%2Fetc",
    b"%",
    b" lead",
    b"trail ",
    b"-rf",
    b"~root",
    b"CON",
    b"a\\..\\b",
    b"\xff\xfe.txt",
    b"\x1b[31m.txt",
    b"n" * 255,
    "漢".encode() * 85,
    "😀.txt".encode(),
    "\u202etxt.exe".encode(),
    unicodedata.normalize("NFC", "café").encode(),
    unicodedata.normalize("NFD", "café").encode(),
    b"Report.txt",
    b"report.txt",
    b"'; DROP TABLE docs;--",
    b"$(touch x)",
    b"{{7*7}}",
    b"<script>",
]
names = st.one_of(
    st.sampled_from(NASTY),
    st.binary(min_size=1, max_size=255),
    st.text(min_size=1, max_size=60).map(lambda text: text.encode("utf-8", "replace")),
).filter(lambda name: b"/" not in name and b"\0" not in name and name not in {b".", b".."} and len(name) <= 255)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder."""
    return tmp_path_factory.mktemp("names")


_seen: dict[str, bytes] = {}


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=names)
def test_any_name_is_a_document(folder: Path, name: bytes) -> None:
    """A file of any name is listed and read; its id is short, safe, the same each time, and no other name's."""
    source = LocalSource("docs", folder, "default", exclude=[])
    path = os.path.join(os.fsencode(folder), name)  # noqa: PTH118
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(name)
    try:
        (listed,) = list(source.list_objects())
        assert key_of(listed.source_uri) == name
        assert source.read(listed.source_uri, 10_000).content == name
    finally:
        os.unlink(path)  # noqa: PTH108
    found = document_id("default", listed.source_uri)
    assert found == document_id("default", source_uri("docs", name))
    assert len(found.encode()) <= MAX_ID_BYTES
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert not found.startswith((".", "-"))
    assert _seen.setdefault(found, name) == name
    assert shown_key(listed.source_uri).isprintable()


def test_two_sources_may_hold_the_same_name() -> None:
    """The same name in two sources is two documents."""
    assert document_id("default", source_uri("one", b"a.md")) != document_id("default", source_uri("two", b"a.md"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A source's folder with links that lead out of it, beside what must not be read."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.md").write_bytes(b"fine")
    for secret in (tmp_path / "secret", tmp_path / "root-of-another" / "secret", tmp_path / "outside" / "secret"):
        secret.parent.mkdir(exist_ok=True)
        secret.write_bytes(SECRET)
    for link, target in {
        "up": "..",
        "sub/up": "../..",
        "out": "../outside",
        "absolute": str(tmp_path),
        "file": "../secret",
        "file-absolute": str(tmp_path / "secret"),
        "chain": "chain2",
        "chain2": "file",
        "loop": "loop",
        "self": ".",
        "proc": "/proc/self/environ",
        "slash": "/",
    }.items():
        (root / link).symlink_to(target)
    return root


TRAVERSALS = [
    b"../secret", b"../outside/secret", b"../root-of-another/secret", b"sub/../../secret", b"./../secret",
    b"sub/./../../secret", b"sub//..//../secret", b"a.md/../../secret", b"..//secret", b".././secret",
    b"/etc/passwd", b"//etc/passwd", b"/../etc/passwd", b"../../../../../../../../../../etc/passwd",
    b"sub/../../../../../../../../etc/passwd", b"/proc/self/environ", b"../root/../secret", b"up/secret",
    b"up/outside/secret", b"sub/up/secret", b"sub/up/outside/secret", b"out/secret", b"out/../secret",
    b"absolute/secret", b"absolute/outside/secret", b"file", b"file-absolute", b"chain", b"chain2", b"loop",
    b"self/../secret", b"self/up/secret", b"self/self/file", b"proc", b"slash/etc/passwd", b"slash/proc/self/environ",
    b"up/root/../secret", b"out/../root/file", b"..", b"../root-of-another", b"sub/../file", b"./file",
]  # fmt: skip


@pytest.mark.parametrize("key", TRAVERSALS)
def test_no_key_leads_out(root: Path, key: bytes) -> None:
    """Nothing outside the folder is read by any key, nor listed by any prefix, whichever links lie in it."""
    source = LocalSource("docs", root, "default", exclude=[])
    with pytest.raises(ReadError) as raised:
        source.read(source_uri("docs", key), 10_000)
    assert raised.value.reason in {Reason.ACCESS_DENIED, Reason.VANISHED, Reason.SOURCE_UNAVAILABLE}
    assert all(listed != SECRET for listed in _listed(source, key))


def test_a_listing_holds_only_what_lies_inside(root: Path) -> None:
    """Links that lead out are no documents."""
    source = LocalSource("docs", root, "default", exclude=[])
    assert [key_of(listed.source_uri) for listed in source.list_objects()] == [b"a.md"]


def _listed(source: LocalSource, prefix: bytes) -> Iterator[bytes]:
    """The contents of what a prefix lists, if it lists anything."""
    try:
        for listed in source.list_objects(prefix):
            yield source.read(listed.source_uri, 10_000).content
    except (SourceError, ReadError):
        return
