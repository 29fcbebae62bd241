"""What every document source keeps: subclass `DocumentSourceContract`, give it a place with documents."""

from abc import ABC, abstractmethod

import pytest

from resources.document_source.document_ids import key_of
from resources.document_source.document_source import DocumentSource, ReadError
from resources.document_state.reasons import Reason

NAMES = (
    b"plain.md",
    b"with space.md",
    b"comma, and; semicolon.md",
    b"new\nline.md",
    b"tab\t.md",
    b"percent%2Fslash.md",
    b"question?hash#.md",
    b"colon:inside.md",
    "emoji 👩‍👩‍👧.md".encode(),
    "caf\u00e9.md".encode(),
    "cafe\u0301.md".encode(),
    "right\u202eto left.md".encode(),
    b"not utf-8 \xff\xfe.md",
    b"-dash.md",
    b"UPPER.md",
    b"upper.md",
    b"x" * 252 + b".md",
    b"deep/er/and/deeper.md",
    b"backslash\\.md",
    b"back\\slash/quote'\".md",
)


class DocumentSourceContract(ABC):
    names = NAMES  # what its places can call an object

    def pytest_generate_tests(self, metafunc):
        """Each name is a test of its own."""
        if "name" in metafunc.fixturenames:
            metafunc.parametrize("name", self.names)

    @pytest.fixture
    @abstractmethod
    def source(self, tmp_path) -> DocumentSource:
        """A source that has nothing."""

    @abstractmethod
    def put(self, source: DocumentSource, key: bytes, content: bytes) -> None:
        """Put an object there, around the source."""

    @abstractmethod
    def remove(self, source: DocumentSource, key: bytes) -> None:
        """Take an object away, around the source."""

    def keys(self, source: DocumentSource, prefix: bytes = b"") -> list[bytes]:
        """The listed keys, sorted."""
        return sorted(key_of(listed.source_uri) for listed in source.list_objects(prefix))

    def uri(self, source: DocumentSource, key: bytes) -> str:
        """The URI under which a key is listed."""
        [found] = [item.source_uri for item in source.list_objects() if key_of(item.source_uri) == key]
        return found

    def test_empty(self, source):
        """A source without documents lists nothing."""
        assert self.keys(source) == []

    def test_any_name(self, source, name):
        """Whatever an object is called, it is listed under just that key and read by its URI."""
        self.put(source, name, b"content")
        [listed] = source.list_objects()
        assert key_of(listed.source_uri) == name
        assert listed.source_uri.startswith(f"{source.name}:")
        assert listed.source_uri.isascii()
        assert listed.size == 7
        read = source.read(listed.source_uri, 100)
        assert (read.content, read.content_version) == (b"content", listed.content_version)

    def test_all_names_at_once(self, source):
        """Names that look alike are different documents."""
        for name in self.names:
            self.put(source, name, name)
        assert self.keys(source) == sorted(self.names)
        for listed in source.list_objects():
            assert source.read(listed.source_uri, 1000).content == key_of(listed.source_uri)

    def test_listing_again_gives_the_same(self, source):
        """Nothing changed, nothing differs."""
        self.put(source, b"a.md", b"1")
        assert list(source.list_objects()) == list(source.list_objects())

    def test_changed_content_changes_the_version(self, source):
        """Other content is another version, even of the same size."""
        self.put(source, b"a.md", b"1")
        [before] = source.list_objects()
        self.put(source, b"a.md", b"2")
        [after] = source.list_objects()
        assert before.source_uri == after.source_uri
        assert before.content_version != after.content_version

    def test_prefix(self, source):
        """A prefix lists what lies below it, whole path parts only, with or without a slash at its end."""
        for key in (b"a/1.md", b"a/b/2.md", b"ab/3.md", b"4.md"):
            self.put(source, key, b"")
        assert self.keys(source, b"a") == self.keys(source, b"a/") == [b"a/1.md", b"a/b/2.md"]
        assert self.keys(source, b"a/b") == [b"a/b/2.md"]

    def test_prefix_of_one_document(self, source):
        """The key of a document as prefix lists just that one, as the whole listing does."""
        for key in (b"a/1.md", b"a/1.md.bak", b"a/2.md"):
            self.put(source, key, b"")
        [listed] = source.list_objects(b"a/1.md")
        assert key_of(listed.source_uri) == b"a/1.md"
        assert listed in list(source.list_objects())

    def test_too_large(self, source):
        """A document over the limit is refused with the reason; one at the limit is read."""
        self.put(source, b"a.md", b"x" * 11)
        uri = self.uri(source, b"a.md")
        with pytest.raises(ReadError) as raised:
            source.read(uri, 10)
        assert raised.value.reason is Reason.TOO_LARGE
        assert len(source.read(uri, 11).content) == 11

    def test_current_version(self, source):
        """An object's version can be asked for without reading it: the listed one, or that it is gone."""
        self.put(source, b"a.md", b"x")
        [listed] = source.list_objects()
        assert source.current_version(listed.source_uri) == listed.content_version
        self.remove(source, b"a.md")
        with pytest.raises(ReadError) as raised:
            source.current_version(listed.source_uri)
        assert raised.value.reason is Reason.VANISHED

    def test_gone(self, source):
        """A document that is gone when it is read is vanished."""
        self.put(source, b"a/a.md", b"x")
        uri = self.uri(source, b"a/a.md")
        self.remove(source, b"a/a.md")
        with pytest.raises(ReadError) as raised:
            source.read(uri, 10)
        assert raised.value.reason is Reason.VANISHED
