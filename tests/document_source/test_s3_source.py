"""A bucket as source: the contract, and what buckets have of their own."""

import threading
import uuid

import pytest
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from resources.document_source.document_ids import key_of, source_uri
from resources.document_source.document_source import DocumentSource, ReadError, SourceError
from resources.document_source.exclusion import DEFAULT_EXCLUDE
from resources.document_source.left_out import LeftOut, WhyLeftOut
from resources.document_state.reasons import Reason
from tests.document_source.contract import DocumentSourceContract
from tests.document_source.s3_places import (
    KEYS_NO_FOLDER_HOLDS,
    UTF8_NAMES,
    ClosingProxy,
    cut_body,
    is_listing,
    is_next_page,
    is_read,
    put,
    source_of,
)
from tests.servers.clients import s3_client
from tests.servers.faults import answer, cut_before, s3_error

ALWAYS = 1000


@pytest.fixture
def proxy(moto_url, aws_credentials):
    """A proxy before moto; a fault that no request met fails the test."""
    with ClosingProxy(moto_url) as proxy:
        yield proxy


@pytest.fixture
def source(proxy, moto_url, bucket_name):
    """A source that is reached by way of the proxy."""
    s3_client(moto_url).create_bucket(Bucket=bucket_name)
    return source_of(bucket_name, proxy.url)


def keys(source, prefix=b""):
    """The listed keys, sorted."""
    return sorted(key_of(listed.source_uri) for listed in source.list_objects(prefix))


def fault_of(source, key: bytes = b"a.md", max_bytes: int = 10**8) -> ReadError:
    """Why a key cannot be read."""
    with pytest.raises(ReadError) as raised:
        source.read(source_uri("docs", key), max_bytes)
    return raised.value


class TestS3Source(DocumentSourceContract):
    names = (*UTF8_NAMES, *KEYS_NO_FOLDER_HOLDS)

    @pytest.fixture
    def source(self, bucket_name) -> DocumentSource:
        """An empty bucket of moto, without a wire in between: moto's own server cannot take every key."""
        with mock_aws():
            source = source_of(bucket_name)
            source.client.create_bucket(Bucket=bucket_name)
            yield source

    def put(self, source, key, content) -> None:
        """See DocumentSourceContract."""
        put(source, key, content)

    def remove(self, source, key) -> None:
        """See DocumentSourceContract."""
        source.client.delete_object(Bucket=source.location.name, Key=source.location.prefix + key.decode())


@pytest.mark.servers
class TestOnSeaweedFS(TestS3Source):
    # It keeps objects as files: neither of these comes back as it was called.
    names = tuple(name for name in UTF8_NAMES if b"\\" not in name)

    @pytest.fixture(scope="class")
    def bucket(self, seaweedfs) -> str:
        """A bucket of a real server, one for all: a bucket takes several of its few volumes."""
        s3_client(seaweedfs.url, 5).create_bucket(Bucket="documents")
        return "documents"

    @pytest.fixture
    def source(self, seaweedfs, bucket, aws_credentials) -> DocumentSource:
        """An empty prefix of the bucket."""
        return source_of(bucket, seaweedfs.url, prefix=uuid.uuid4().hex)


class TestKeys:
    def test_nothing_beside_the_prefix(self, source):
        """What only begins like the prefix, lies above it or in another folder is none of the source's."""
        put(source, b"a.md", b"x")
        for key in ("docs", "docs.md", "docs2/a.md", "other/docs/a.md"):
            source.client.put_object(Bucket=source.location.name, Key=key, Body=b"x")
        assert keys(source) == [b"a.md"]

    def test_whole_bucket(self, source, moto_url):
        """Without a prefix every key of the bucket is a document's."""
        put(source, b"a.md", b"x")
        assert keys(source_of(source.location.name, moto_url, prefix="")) == [b"docs/a.md"]

    def test_folder_markers_are_told_and_no_documents(self, source):
        """Objects without bytes whose key ends in a slash are left out and counted; with bytes they are documents."""
        for key, content in ((b"", b""), (b"a/", b""), (b"b/", b"bytes"), (b"a/1.md", b""), (b".git/x", b"")):
            put(source, key, content)
        left_out = LeftOut()
        assert len(list(source.list_objects(left_out=left_out))) == 2
        assert keys(source) == [b"a/1.md", b"b/"]
        assert left_out.counts == {WhyLeftOut.HIDDEN: 1, WhyLeftOut.FOLDER_MARKER: 2}
        assert left_out.examples[WhyLeftOut.HIDDEN] == ".git/x"
        assert source.read(source_uri("docs", b"b/"), 10).content == b"bytes"
        assert keys(source, b"b/") == [b"b/"]
        assert keys(source, b"a/") == [b"a/1.md"]

    def test_names_left_out_are_those_of_folders(self, source, bucket_name, moto_url):
        """Hidden and temporary names are left out at any level and by any prefix; patterns are the configuration's."""
        for key in (b".hidden", b"sub/.x/y.md", b"sub/~$open.docx", b"a/../seen.md", b"sub/a.log", b"sub/a.LOG"):
            put(source, key, b"x")
        assert keys(source) == [b"a/../seen.md", b"sub/a.LOG", b"sub/a.log"]
        for prefix in (b".hidden", b"sub/.x", b"sub/.x/y.md", b"sub/~$open.docx"):
            assert keys(source, prefix) == []
        other = source_of(bucket_name, moto_url, exclude=(*DEFAULT_EXCLUDE, "*.log"))
        assert keys(other) == [b"a/../seen.md", b"sub/a.LOG"]

    @pytest.mark.parametrize("prefix", [b"gone", b"gone/", b"a.m", b"not utf-8 \xff"])
    def test_missing_prefix(self, source, prefix):
        """A prefix with nothing below it is an error: nothing may be concluded from it."""
        put(source, b"a.md", b"x")
        with pytest.raises(SourceError, match="nothing is at"):
            keys(source, prefix)
        assert fault_of(source, b"not utf-8 \xff").reason is Reason.VANISHED

    def test_prefix_lists_no_neighbours(self, source, proxy):
        """A document's key as prefix costs two requests, however many keys begin with it."""
        for number in range(30):
            put(source, b"a%d" % number, b"x")
        put(source, b"a", b"x")
        proxy.reset_traffic()
        assert keys(source, b"a") == [b"a"]
        assert proxy.traffic["LIST"].requests == 2
        assert proxy.traffic["LIST"].received < 3000

    @pytest.mark.parametrize(
        ("place", "key"),
        [
            ("s3://{bucket}/docs", b""),
            ("s3://{bucket}/docs/", b""),
            ("{uri}", b""),
            ("s3://{bucket}/docs/sub/ü %41?.md", "sub/ü %41?.md".encode()),
            ("s3://{bucket}/docs//a//b", b"/a//b"),
            ("s3://{bucket}/docs2", None),
            ("s3://{bucket}", None),
            ("s3://another/docs/a", None),
            ("docs/a", None),
        ],
    )
    def test_place(self, source, place, key):
        """A key is named by its URI as other tools write it, nothing decoded."""
        assert source.key_of_place(place.format(bucket=source.location.name, uri=source.uri)) == key


class TestVersions:
    def test_same_content_written_again(self, source):
        """An object overwritten with the same content is the same version."""
        put(source, b"a.md", b"x")
        before = list(source.list_objects())
        put(source, b"a.md", b"x")
        assert list(source.list_objects()) == before

    def test_object_of_several_parts(self, source):
        """An object uploaded in parts has a version like any other, the same listed and read."""
        where = {"Bucket": source.location.name, "Key": "docs/big.md"}
        upload = source.client.create_multipart_upload(**where)["UploadId"]
        parts = []
        for number in (1, 2):
            sent = source.client.upload_part(**where, UploadId=upload, PartNumber=number, Body=b"x" * 5 * 2**20)
            parts.append({"PartNumber": number, "ETag": sent["ETag"]})
        source.client.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})
        [listed] = source.list_objects()
        read = source.read(listed.source_uri, 10**8)
        assert (len(read.content), read.content_version) == (10 * 2**20, listed.content_version)
        assert listed.content_version.endswith("-2")

    def test_overwritten_between_listing_and_reading(self, source):
        """What is read is the new content under its own version, so the next listing sees that it is known."""
        put(source, b"a.md", b"1")
        [before] = source.list_objects()
        put(source, b"a.md", b"22")
        read = source.read(before.source_uri, 10)
        assert read.content == b"22"
        assert read.content_version != before.content_version
        assert [item.content_version for item in source.list_objects()] == [read.content_version]


class TestReading:
    def test_too_large_is_not_fetched(self, source, proxy, moto_url):
        """An object over the limit is refused by its headers."""
        put(source, b"a.md", b"x" * 100_000)
        error = fault_of(source, max_bytes=99_999)
        assert error.reason is Reason.TOO_LARGE
        assert str(error) == "It has 100,000 bytes. limits.file_bytes is 99,999."

    def test_body_that_breaks_off_goes_on(self, source, proxy):
        """A body cut in the middle is continued where it broke, not read again."""
        content = bytes(range(256)) * 10_000
        put(source, b"a.md", content)
        proxy.inject(cut_body(1_500_000), is_read)
        proxy.inject(cut_body(0), is_read)
        proxy.inject(cut_body(500_000), is_read)
        proxy.reset_traffic()
        assert source.read("docs:a.md", 10**8).content == content
        assert proxy.pending() == 0
        assert proxy.traffic["GET"].requests == 4
        assert proxy.traffic["GET"].received < len(content) + 10_000

    def test_body_that_breaks_off_each_time(self, source, proxy):
        """If it never comes to its end, the source is unavailable; half of it is never taken for the whole."""
        put(source, b"a.md", b"x" * 10_000)
        proxy.inject(cut_body(10), is_read, ALWAYS)
        assert fault_of(source).reason is Reason.SOURCE_UNAVAILABLE

    def test_overwritten_between_two_ranges(self, source, proxy, moto_url):
        """An object that changes between two parts of its reading is never a mixture."""
        put(source, b"a.md", b"1" * 10_000)
        cut = cut_body(5_000)

        def cut_and_overwrite(request, forward):
            given = cut(request, forward)
            put(source_of(source.location.name, moto_url), b"a.md", b"2" * 10_000)
            return given

        proxy.inject(cut_and_overwrite, is_read)
        assert fault_of(source).reason is Reason.CHANGED_WHILE_READING

    def test_removed_between_two_ranges(self, source, proxy, moto_url):
        """An object that goes while it is read is gone."""
        put(source, b"a.md", b"1" * 10_000)
        cut = cut_body(5_000)

        def cut_and_remove(request, forward):
            given = cut(request, forward)
            s3_client(moto_url).delete_object(Bucket=source.location.name, Key="docs/a.md")
            return given

        proxy.inject(cut_and_remove, is_read)
        assert fault_of(source).reason is Reason.VANISHED

    @pytest.mark.parametrize(
        ("status", "code", "reason"),
        [
            (403, "AccessDenied", Reason.ACCESS_DENIED),
            (403, "InvalidObjectState", Reason.ACCESS_DENIED),
            (403, "InvalidAccessKeyId", Reason.SOURCE_UNAVAILABLE),
            (400, "ExpiredToken", Reason.SOURCE_UNAVAILABLE),
            (404, "NoSuchBucket", Reason.SOURCE_UNAVAILABLE),
            (404, "NoSuchKey", Reason.VANISHED),
            (412, "PreconditionFailed", Reason.CHANGED_WHILE_READING),
            (503, "SlowDown", Reason.SOURCE_UNAVAILABLE),
            (500, "InternalError", Reason.SOURCE_UNAVAILABLE),
        ],
    )
    def test_reasons(self, source, proxy, status, code, reason):
        """What a server refuses for is the document's reason; what may pass by itself is tried again."""
        put(source, b"a.md", b"x")
        proxy.inject(s3_error(status, code), is_read, ALWAYS)
        error = fault_of(source)
        assert error.reason is reason
        assert str(error)
        assert "made by the proxy" not in str(error) or code == "AccessDenied"

    def test_archived(self, source, proxy):
        """An archived object says that it has to be restored."""
        put(source, b"a.md", b"x")
        proxy.inject(s3_error(403, "InvalidObjectState"), is_read)
        assert "Restore it" in str(fault_of(source))

    def test_no_answer(self, source, proxy):
        """A server that does not answer is the source's trouble, not the document's."""
        put(source, b"a.md", b"x")
        proxy.inject(cut_before(), is_read, ALWAYS)
        assert fault_of(source).reason is Reason.SOURCE_UNAVAILABLE

    def test_passing_trouble_passes(self, source, proxy):
        """Throttled once, it is read all the same."""
        put(source, b"a.md", b"x")
        proxy.inject(s3_error(503, "SlowDown"), is_read)
        assert source.read("docs:a.md", 10).content == b"x"
        assert proxy.pending() == 0

    def test_many_threads(self, source):
        """Many threads read at once by one source that none has used before."""
        for number in range(40):
            put(source, b"%d.md" % number, b"%d" % number)
        fresh = source_of(source.location.name, source.location.endpoint_url)
        found = {}

        def read(number: int) -> None:
            found[number] = fresh.read(f"docs:{number}.md", 10).content

        threads = [threading.Thread(target=read, args=(number,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {number: b"%d" % number for number in range(40)}


class TestAnonymous:
    def test_requests_are_not_signed(self, source, proxy, monkeypatch):
        """With `anonymous=true` no credentials are looked for, and none are sent."""
        put(source, b"a.md", b"x")
        source.client.put_object_acl(Bucket=source.location.name, Key="docs/a.md", ACL="public-read")
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        signed = []

        def note(request, forward):
            signed.append("Authorization" in request.headers)
            return forward()

        proxy.inject(note, times=ALWAYS)
        public = source_of(source.location.name, proxy.url, anonymous="true")
        [listed] = public.list_objects()
        assert public.read(listed.source_uri, 10).content == b"x"
        assert signed == [False, False]

    def test_without_credentials_it_is_told(self, source, monkeypatch):
        """Without credentials and without `anonymous` the error says what is missing."""
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        poor = source_of(source.location.name, source.location.endpoint_url)
        with pytest.raises(SourceError, match=r"'docs'.*No credentials"):
            keys(poor)
        assert fault_of(poor).reason is Reason.SOURCE_UNAVAILABLE


class TestFailingListings:
    @pytest.fixture(scope="class")
    def full_bucket(self, moto_url):
        """A bucket whose listing takes two pages."""
        bucket = "bucket-of-two-pages"
        s3_client(moto_url).create_bucket(Bucket=bucket)
        inside = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        for number in range(1_200):
            inside.put_object(bucket, f"docs/{number:04}.md", b"")
        return bucket

    def listed_until_it_failed(self, source) -> tuple[int, SourceError]:
        """How many objects a failing listing gave."""
        given = []
        with pytest.raises(SourceError) as raised:
            given.extend(source.list_objects())
        return len(given), raised.value

    def test_two_pages(self, full_bucket, proxy):
        """A bucket of more than a page is listed whole, in a request a page."""
        assert len(set(keys(source_of(full_bucket, proxy.url)))) == 1_200
        assert proxy.traffic["LIST"].requests == 2

    @pytest.mark.parametrize(
        "fault",
        [
            s3_error(503, "SlowDown"),
            s3_error(403, "AccessDenied"),
            cut_before(),
            cut_body(5_000),
            answer(200, b"<html"),
        ],
        ids=["throttled", "denied", "no answer", "cut", "nonsense"],
    )
    def test_second_page_fails(self, full_bucket, proxy, fault):
        """A listing that fails on its way says that it is a part and of which source; it never passes for the whole."""
        proxy.inject(fault, is_next_page, ALWAYS)
        count, error = self.listed_until_it_failed(source_of(full_bucket, proxy.url))
        assert (count, error.partial) == (1_000, True)
        assert "Source 'docs'" in str(error)
        assert "Nothing is taken to have vanished" in str(error)

    def test_first_page_fails(self, full_bucket, proxy):
        """A listing of which nothing came is no part either."""
        proxy.inject(s3_error(503, "SlowDown"), is_listing, ALWAYS)
        count, error = self.listed_until_it_failed(source_of(full_bucket, proxy.url))
        assert (count, error.partial) == (0, False)
        assert "throttled" in str(error)

    def test_passing_trouble_passes(self, full_bucket, proxy):
        """A page that comes at the second try is as good as any."""
        proxy.inject(s3_error(503, "SlowDown"), is_next_page)
        proxy.inject(cut_body(5_000), is_next_page)
        assert len(keys(source_of(full_bucket, proxy.url))) == 1_200
        assert proxy.pending() == 0

    @pytest.mark.parametrize("token", ["", "<NextContinuationToken>same</NextContinuationToken>"])
    def test_more_without_a_way_to_it(self, source, proxy, token):
        """A server that says there is more, and not where, has given a part: the rest is not gone."""
        page = (
            "<ListBucketResult><IsTruncated>true</IsTruncated>" + token + "<Contents><Key>docs/a.md</Key>"
            '<ETag>"e"</ETag><Size>1</Size></Contents></ListBucketResult>'
        )
        proxy.inject(answer(200, page.encode()), is_listing, ALWAYS)
        with pytest.raises(SourceError, match="there is more") as raised:
            keys(source)
        assert raised.value.partial

    def test_missing_bucket(self, proxy):
        """A bucket that is not there is an error, not an empty source."""
        with pytest.raises(SourceError, match=r"'docs'.*bucket does not exist"):
            keys(source_of("no-such-bucket", proxy.url))
