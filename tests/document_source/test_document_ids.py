"""Names of documents: the same for ever, readable, and safe wherever they are used."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.document_source.document_ids import MAX_ID_BYTES, document_id, key_of, shown_key, source_uri

# Ids are partition keys and stand in other people's indexes: these may never change.
KNOWN = {
    b"a.md": ("docs:a.md", "a.md-266ec197ff24852a"),
    b"Reports/2024 Q1.pdf": ("docs:Reports/2024%20Q1.pdf", "reports-2024-q1.pdf-efbf0920f9453258"),
    b"\xff\n%2F": ("docs:%FF%0A%252F", "2f-b3df33348a74184a"),
}
HOSTILE_KEYS = (
    b"",
    b"/",
    b".",
    b"..",
    b"...",
    b"../../etc/passwd",
    b"-",
    b"--help",
    b"a" * 500,
    b"a/" * 200,
    b"." * 100 + b"a",
    b"\x00\xff",
    "ß ẞ \u017f \u212a \u0130 \u0131".encode(),
    "日本語.pdf".encode(),
)
keys = st.one_of(st.binary(max_size=300), st.text(max_size=200).map(lambda text: text.encode("utf-8", "ignore")))


class TestDocumentId:
    @pytest.mark.parametrize("key", KNOWN)
    def test_known_vectors(self, key):
        """The URI and id of a key are what they were in every version before."""
        uri, expected = KNOWN[key]
        assert source_uri("docs", key) == uri
        assert document_id("default", uri) == expected

    @given(keys)
    def test_any_key(self, key):
        """Whatever the key, the id is short, of safe characters only, and no file name with a meaning."""
        check(document_id("default", source_uri("docs", key)))

    @pytest.mark.parametrize("key", HOSTILE_KEYS)
    def test_hostile_keys(self, key):
        """Keys made to break ids do not."""
        check(document_id("default", source_uri("docs", key)))

    @given(keys)
    def test_stable(self, key):
        """The same key gives the same id."""
        assert document_id("o", source_uri("docs", key)) == document_id("o", source_uri("docs", bytes(key)))

    @given(st.lists(keys, unique=True, min_size=2, max_size=20))
    def test_different_keys_have_different_ids(self, several):
        """No two keys share an id."""
        assert len({document_id("o", source_uri("docs", key)) for key in several}) == len(several)

    def test_organisation_and_source_count(self):
        """The same key of another organisation or source is another document, and the parts cannot be shifted."""
        ids = {
            document_id("o", source_uri("docs", b"a")),
            document_id("p", source_uri("docs", b"a")),
            document_id("o", source_uri("docs2", b"a")),
            document_id("od", "ocs:a"),
        }
        assert len(ids) == 4

    def test_readable(self):
        """A person recognises the end of the key, which is where the name is."""
        found = document_id("default", source_uri("docs", b"very/" * 30 + b"Annual Report 2024.PDF"))
        assert re.fullmatch(r".*very-annual-report-2024\.pdf-[0-9a-f]{16}", found)
        assert document_id("default", source_uri("docs", "日本".encode())).startswith("document-")


def check(found: str) -> None:
    """The rules of an id."""
    assert re.fullmatch(r"[a-z0-9_][a-z0-9._-]*-[0-9a-f]{16}", found)
    assert len(found.encode()) <= MAX_ID_BYTES
    assert ".." not in found


class TestSourceUri:
    @given(keys)
    def test_round_trip(self, key):
        """Any bytes come back from a URI, which is plain ASCII without spaces and controls."""
        uri = source_uri("docs", key)
        assert key_of(uri) == key
        assert uri.isascii()
        assert uri.isprintable()
        assert " " not in uri

    @pytest.mark.parametrize("key", [b"\xff\xfe", b"a\nb", b"a%2Fb", b"a/b", b"a:b", b"%", b"%%41", b"+", b"a b"])
    def test_what_encodings_get_wrong(self, key):
        """Invalid UTF-8, line ends and what looks encoded already come back as they were."""
        assert key_of(source_uri("docs", key)) == key

    @given(keys, keys)
    def test_one_uri_for_one_key(self, one, other):
        """Two keys never share a URI."""
        assert (source_uri("docs", one) == source_uri("docs", other)) is (one == other)


class TestShownKey:
    @given(keys)
    def test_cannot_mislead(self, key):
        """What is shown holds no control, bidirectional or invisible character, whatever the key."""
        shown = shown_key(source_uri("docs", key))
        assert shown.isprintable()
        shown.encode()

    @pytest.mark.parametrize(
        ("key", "shown"),
        [
            (b"a b/c.md", "a b/c.md"),
            ("caf\u00e9 日本.md".encode(), "café 日本.md"),
            ("a\u202eb".encode(), "a%E2%80%AEb"),
            (b"a\x1b[31m", "a%1B[31m"),
            (b"a\nb", "a%0Ab"),
            ("a\u200bb\u2066".encode(), "a%E2%80%8Bb%E2%81%A6"),
        ],
    )
    def test_examples(self, key, shown):
        """Text is shown as text, and what could mislead in its bytes."""
        assert shown_key(source_uri("docs", key)) == shown

    def test_invalid_text(self):
        """Bytes that are no text are shown as such."""
        assert "ff" in shown_key(source_uri("docs", b"a\xffb")).lower()
