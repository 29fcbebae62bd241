"""What members are called here, and how their URIs are put together and taken apart."""

import re
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.document_source.containers import is_archive, is_container, names_of_ours
from resources.document_source.document_ids import is_below, parent_of, source_uri, split_member


@given(
    st.lists(st.text() | st.sampled_from(["a.md", "../a.md", "/etc/passwd", "a\\b", "member-1.md", "", ".", "x" * 300]))
)
def test_names_are_harmless_and_unique(names: list[str]) -> None:
    """Whatever a container calls its members, each has one name here that leads nowhere, and the same the next time."""
    ours = names_of_ours(names)
    assert len(ours) == len(set(ours)) == len(names)
    for name in ours:
        assert name.isprintable()
        assert not name.startswith("/")
        assert "\\" not in name
        assert not {"", ".", ".."}.intersection(name.split("/"))
        assert all(len(part.encode()) <= 255 for part in name.split("/"))
    assert names_of_ours(names) == ours


def test_good_names_stay_and_others_keep_their_suffix() -> None:
    """A name without harm is kept; of two equal ones the first keeps it; the type of the others stays to be seen."""
    names = ["a/b.md", "../x.pdf", "a/b.md", "C:\\evil.tar.gz", "member-3.md"]
    assert names_of_ours(names) == ["a/b.md", "member-2.pdf", "another-member-3.md", "member-4.tar.gz", "member-3.md"]


@given(st.binary(min_size=1), st.text(min_size=1))
def test_uris_of_members(key: bytes, path: str) -> None:
    """A member's URI is taken apart as it was put together, whatever the names; no other object has such a one."""
    path = path.encode("utf-8", "replace").decode()
    container = source_uri("docs", key)
    uri = f"{container}!/{quote(path)}"
    assert parent_of(container) == ""
    assert parent_of(uri) == container
    assert split_member(uri)[0] == container
    assert unquote(split_member(uri)[1]) == path
    assert parent_of(f"{uri}!/{quote(path)}") == uri
    assert is_below(uri, container)
    assert not re.search("!", container)


@pytest.mark.parametrize(
    "name", ["a.zip", "A.ZIP", "a.tar", "a.tar.gz", "a.tgz", "a.gz", "a.tar.bz2", "a.TBZ2", "a.txz", "a.xz", "a.mbox"]
)
def test_archives(name: str) -> None:
    """Archives are known by their names, in any case."""
    assert is_archive(name)
    assert is_container(name)


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.epub", "a.odt", "a.jar", "zip", "a.zip.md"])
def test_what_is_no_container(name: str) -> None:
    """Office files and books are zips, and documents."""
    assert not is_container(name)
