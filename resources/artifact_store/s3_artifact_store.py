"""Artifacts in an S3 bucket, an object each, for workers on many machines.

    <prefix>/artifacts/<first 2 digits of the key>/<key>.json.zst
    <prefix>/hints/<name, percent-encoded>.hint

Why an object each, and no packs: see docs/decisions/0006-artifacts-in-s3.md.
"""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

from botocore.exceptions import BotoCoreError, ClientError

from resources.artifact_store.artifact import Artifact
from resources.artifact_store.artifact_store import ArtifactStore, ArtifactStoreError
from resources.artifact_store.packed_artifact import LARGEST_BODY, PackedArtifact, pack, unpack_whole
from resources.aws.client import CONNECTIONS, open_client
from resources.aws.location import AwsLocation
from resources.aws.trouble import trouble_of
from resources.aws.whole_object import TooLargeError, read_whole

_SUFFIX = ".json.zst"
T = TypeVar("T")
R = TypeVar("R")


class S3ArtifactStore(ArtifactStore):
    """Keeps artifacts as compressed JSON. Nothing is asked of the bucket before it is used."""

    def __init__(self, location: AwsLocation) -> None:
        self._location = location
        self._opened: Any = None
        self._opening = threading.Lock()

    def put_many(self, artifacts: Sequence[Artifact]) -> list[str]:
        """See ArtifactStore."""
        packed = pack(artifacts)
        with self._errors():
            _in_parallel(self._put, {one.key: one for one in packed}.values())
        return [one.key for one in packed]

    def get_many(self, keys: Collection[str]) -> dict[str, Artifact]:
        """See ArtifactStore."""
        wanted = list(dict.fromkeys(keys))
        with self._errors():
            bodies = _in_parallel(lambda key: self._read(self._key_of(key)), wanted)
        found = [(key, body) for key, body in zip(wanted, bodies, strict=True) if body is not None]
        return unpack_whole(found, self._location.uri)

    def of_documents(self, document_ids: Collection[str]) -> Iterator[tuple[str, Artifact]]:
        """See ArtifactStore. An object's name does not say whose it is, so every one is read."""
        wanted = set(document_ids)
        for keys in self._pages_of_keys():
            for key, artifact in self.get_many(keys).items():
                if artifact.document_id in wanted:
                    yield key, artifact

    def write_hint(self, name: str, value: bytes) -> None:
        """See ArtifactStore."""
        with self._errors():
            self._client.put_object(Bucket=self._location.name, Key=self._hint_key_of(name), Body=value)

    def read_hint(self, name: str) -> bytes | None:
        """See ArtifactStore."""
        with self._errors():
            return self._read(self._hint_key_of(name))

    @property
    def _client(self) -> Any:
        with self._opening:
            if self._opened is None:
                self._opened = open_client(self._location)
            return self._opened

    def _pages_of_keys(self) -> Iterator[list[str]]:
        with self._errors():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._location.name, Prefix=f"{self._location.prefix}artifacts/"
            )
            for page in pages:
                names = [item["Key"].rsplit("/", 1)[-1] for item in page.get("Contents", ())]
                yield [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]

    def _put(self, packed: PackedArtifact) -> None:
        # A key names its bytes, so writing it again changes nothing, or mends what was damaged.
        self._client.put_object(Bucket=self._location.name, Key=self._key_of(packed.key), Body=packed.body)

    def _read(self, key: str) -> bytes | None:
        try:
            return read_whole(self._client, self._location.name, key, LARGEST_BODY).content
        except ClientError as error:
            if trouble_of(error).code in {"NoSuchKey", str(HTTPStatus.NOT_FOUND.value)}:
                return None
            raise

    def _key_of(self, key: str) -> str:
        return f"{self._location.prefix}artifacts/{key[:2]}/{key}{_SUFFIX}"

    def _hint_key_of(self, name: str) -> str:
        # The suffix keeps a name of dots from being a step up in the eyes of a server that stores files.
        return f"{self._location.prefix}hints/{quote(name, safe='')}.hint"

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            raise ArtifactStoreError(f"Artifact store {self._location.uri}: {trouble_of(error).message}") from error
        except TooLargeError as error:
            raise ArtifactStoreError(
                f"Artifact store {self._location.uri}: an object is no artifact: {error}"
            ) from error


def _in_parallel(work: Callable[[T], R], items: Collection[T]) -> list[R]:
    """The result for each item, in order; the first failure, once what is under way has ended."""
    if not items:
        return []
    with ThreadPoolExecutor(min(CONNECTIONS, len(items)), "artifacts") as threads:
        return list(threads.map(work, items))
