"""Documents in an S3 bucket, or on a server that speaks its protocol."""

import threading
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from resources.aws.client import CONNECTIONS
from resources.aws.location import AwsLocation
from resources.document_source.document_ids import key_of, shown_key, source_uri
from resources.document_source.document_source import DocumentSource, ReadError, ReadResult, SourceError, SourceObject
from resources.document_source.exclusion import DEFAULT_EXCLUDE, Exclusion
from resources.document_source.left_out import LeftOut, WhyLeftOut
from resources.document_state.reasons import Reason

if TYPE_CHECKING:
    from botocore.exceptions import BotoCoreError, ClientError


class S3Source(DocumentSource):
    """The objects of a bucket whose keys begin with a prefix; what follows it is a document's key.

    An object's version is its ETag: it changes with the content, and the same content written again, which S3 calls a
    new version and a new time, is usually no news. Where an ETag is more than the content's hash (several parts,
    encryption), writing again costs one reading, since the content's own hash decides then.

    Names matching `exclude` (at any level) are left out, as are the objects without bytes whose keys end in `/`: they
    are how consoles show an empty folder.
    """

    kind = "s3"
    parallel_reads = CONNECTIONS

    def __init__(self, name: str, location: AwsLocation, org_id: str, exclude: Sequence[str] = DEFAULT_EXCLUDE) -> None:
        """Nothing is asked of the bucket before it is used."""
        self.name = name
        self.org_id = org_id
        self.location = location
        self.uri = location.uri
        self._exclusion = Exclusion(exclude)
        self._opened: Any = None
        self._opening = threading.Lock()

    def list_objects(self, prefix: bytes = b"", left_out: LeftOut | None = None) -> Iterator[SourceObject]:
        """See DocumentSource."""
        left_out = LeftOut() if left_out is None else left_out
        if self._exclusion.why(prefix):
            left_out.add(WhyLeftOut.EXCLUDED, shown_key(source_uri(self.name, prefix)))
            return
        listing = _Listing(self)
        if not prefix:
            yield from self._kept(listing.below(""), listing, left_out)
        else:
            path = prefix.decode(errors="backslashreplace").rstrip("/")
            yield from self._kept(listing.only(path), listing, left_out)
            yield from self._kept(listing.below(f"{path}/"), listing, left_out)
            if not listing.n_listed:
                raise SourceError(
                    self.name, f"nothing is at '{path}' in {self.uri}. If it was removed, name its folder."
                )

    def read(self, source_uri: str, max_bytes: int) -> ReadResult:
        """See DocumentSource."""
        from botocore.exceptions import BotoCoreError, ClientError

        from resources.aws.whole_object import TooLargeError, read_whole

        try:
            key = self.location.prefix + key_of(source_uri).decode()
            found = read_whole(self.client, self.location.name, key, max_bytes)
        except UnicodeDecodeError as error:
            raise ReadError(Reason.VANISHED, "No object has such a key: it is not UTF-8.") from error
        except TooLargeError as error:
            raise ReadError(Reason.TOO_LARGE, f"{error} limits.file_bytes is {max_bytes:,}.") from error
        except (ClientError, BotoCoreError) as error:
            raise _read_error(error) from error
        return ReadResult(found.content, _version(found.etag))

    def current_version(self, source_uri: str) -> str:
        """See DocumentSource."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            key = self.location.prefix + key_of(source_uri).decode()
            answer = self.client.head_object(Bucket=self.location.name, Key=key)
        except UnicodeDecodeError as error:
            raise ReadError(Reason.VANISHED, "No object has such a key: it is not UTF-8.") from error
        except (ClientError, BotoCoreError) as error:
            raise _read_error(error) from error
        return _version(answer["ETag"])

    def key_of_place(self, place: str) -> bytes | None:
        """See DocumentSource: a place is `s3://bucket/key`, the key as it is; or the source's URI."""
        start = f"s3://{self.location.name}/{self.location.prefix}"
        if place == self.uri or place.rstrip("/") == start.rstrip("/"):
            return b""
        if not place.startswith(start):
            return None
        return place[len(start) :].encode("utf-8", "surrogateescape")

    def key_of_source(self, other: DocumentSource) -> bytes | None:
        """See DocumentSource."""
        if not isinstance(other, S3Source) or not other.location.prefix.startswith(self.location.prefix):
            return None
        ours, theirs = ((source.location.endpoint_url, source.location.name) for source in (self, other))
        key = other.location.prefix[len(self.location.prefix) :].rstrip("/").encode()
        return key if ours == theirs and not self._exclusion.why(key) else None

    @property
    def client(self) -> Any:
        """boto3's client, made when it is first used."""
        with self._opening:
            if self._opened is None:
                from resources.aws.client import open_client

                self._opened = open_client(self.location)
            return self._opened

    def _kept(self, listed: Iterator[dict[str, Any]], listing: "_Listing", left_out: LeftOut) -> Iterator[SourceObject]:
        skip = len(self.location.prefix)
        for item in listed:
            listing.n_listed += 1
            key = item["Key"][skip:].encode()
            if why := self._exclusion.why(key):
                left_out.add(why, shown_key(source_uri(self.name, key)))
            elif not item["Size"] and item["Key"].endswith("/"):
                left_out.add(WhyLeftOut.FOLDER_MARKER, shown_key(source_uri(self.name, key)))
            else:
                yield SourceObject(source_uri(self.name, key), _version(item["ETag"]), item["Size"])


class _Listing:
    """One listing of a source, of several requests, and what was seen in it."""

    def __init__(self, source: S3Source) -> None:
        self._source = source
        self.n_listed = 0

    def below(self, path: str) -> Iterator[dict[str, Any]]:
        """Every object whose key begins with a path, page by page."""
        token = ""
        while True:
            page = self._page(path, {"ContinuationToken": token} if token else {})
            yield from page.get("Contents", ())
            if not page.get("IsTruncated"):
                return
            last, token = token, page.get("NextContinuationToken", "")
            # To go on would be to list for ever, and to end here to take the rest for gone.
            if token in {"", last}:
                raise self._error("the server says that there is more, and not where.")

    def only(self, path: str) -> Iterator[dict[str, Any]]:
        """The object of just this key, if there is one: keys are listed in order, so it is the first that begins so."""
        page = self._page(path, {"MaxKeys": 1})
        yield from (item for item in page.get("Contents", ()) if item["Key"] == self._source.location.prefix + path)

    def _page(self, path: str, more: dict[str, Any]) -> dict[str, Any]:
        """A page. boto3 asks for keys percent-encoded, which XML cannot hold as they are, and decodes them."""
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        from resources.aws.trouble import trouble_of

        location = self._source.location
        try:
            page: dict[str, Any] = self._source.client.list_objects_v2(
                Bucket=location.name, Prefix=location.prefix + path, **more
            )
        except (ClientError, BotoCoreError) as error:
            raise self._error(trouble_of(error).message) from error
        except ResponseParserError as error:
            raise self._error("the server's answer cannot be understood.") from error
        return page

    def _error(self, message: str) -> SourceError:
        return SourceError(
            self._source.name,
            f"cannot list {self._source.uri}: {message} Nothing is taken to have vanished from this source.",
            partial=self.n_listed > 0,
        )


def _version(etag: str) -> str:
    return etag.strip('"')


def _read_error(error: "ClientError | BotoCoreError") -> ReadError:
    from resources.aws.trouble import trouble_of

    trouble = trouble_of(error)
    if trouble.status in {HTTPStatus.PRECONDITION_FAILED, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}:
        return ReadError(Reason.CHANGED_WHILE_READING, "It changed while it was read.")
    if trouble.status == HTTPStatus.NOT_FOUND and trouble.code != "NoSuchBucket":
        return ReadError(Reason.VANISHED, "The object is gone.")
    if trouble.code == "InvalidObjectState":
        return ReadError(Reason.ACCESS_DENIED, "The object is archived. Restore it in S3, then retry.")
    reason = Reason.ACCESS_DENIED if trouble.denied else Reason.SOURCE_UNAVAILABLE
    return ReadError(reason, trouble.message)
