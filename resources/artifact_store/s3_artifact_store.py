"""Artifacts in an S3 bucket, an object each, for workers on many machines.

    <prefix>/artifacts/<first 2 digits of the key>/<key>.json.zst
    <prefix>/generations/<number, 12 digits>
    <prefix>/hints/<name, percent-encoded>.hint

Why an object each, and no packs: see docs/decisions/0006-artifacts-in-s3.md. The largest generation is the one that
keys are given in: objects that are only ever added need no condition that a server might not keep.
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
from resources.artifact_store.artifact_key import is_artifact_key, tag_of
from resources.artifact_store.artifact_store import ArtifactStore, ArtifactStoreError, KeptArtifact
from resources.artifact_store.packed_artifact import LARGEST_BODY, PackedArtifact, pack, unpack_whole
from resources.aws.client import CONNECTIONS, open_client
from resources.aws.location import AwsLocation
from resources.aws.trouble import trouble_of
from resources.aws.whole_object import TooLargeError, read_whole

_SUFFIX = ".json.zst"
_LARGEST_DELETION = 1_000

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
        if not artifacts:
            return []
        with self._errors():
            packed = pack(artifacts, self._generation())
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
        """See ArtifactStore."""
        for document_id in document_ids:
            with self._errors():
                for page in self._listed(tag_of(document_id)):
                    yield from self.get_many([kept.key for kept in page]).items()

    def begin_generation(self) -> int:
        """See ArtifactStore."""
        with self._errors():
            number = self._generation() + 1
            self._client.put_object(Bucket=self._location.name, Key=f"{self._generations}{number:012d}", Body=b"")
        return number

    def pages(self) -> Iterator[Sequence[KeptArtifact]]:
        """See ArtifactStore."""
        with self._errors():
            yield from self._listed("")

    def remove_many(self, keys: Collection[str]) -> None:
        """See ArtifactStore."""
        wanted = list(keys)
        with self._errors():
            for start in range(0, len(wanted), _LARGEST_DELETION):
                self._delete(wanted[start : start + _LARGEST_DELETION])

    def remove_documents(self, document_ids: Collection[str]) -> None:
        """See ArtifactStore."""
        with self._errors():
            _in_parallel(self._remove_document, document_ids)

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

    @property
    def _generations(self) -> str:
        return f"{self._location.prefix}generations/"

    def _generation(self) -> int:
        """The generation that keys are given in. One is begun for each `ingest gc`, so they are few."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._location.name, Prefix=self._generations
        )
        numbers = [found["Key"].removeprefix(self._generations) for page in pages for found in page.get("Contents", [])]
        return max((int(number) for number in numbers if number.isdecimal()), default=0)

    def _listed(self, start: str) -> Iterator[list[KeptArtifact]]:
        """Pages of the artifacts whose keys begin with `start`."""
        folder = f"{self._location.prefix}artifacts/"
        prefix = self._key_of(start).removesuffix(_SUFFIX) if start else folder
        paginator = self._client.get_paginator("list_objects_v2")
        for page in paginator.paginate(Bucket=self._location.name, Prefix=prefix):
            kept = [
                KeptArtifact(found["Key"].rpartition("/")[2].removesuffix(_SUFFIX), int(found["Size"]))
                for found in page.get("Contents", [])
            ]
            yield [one for one in kept if is_artifact_key(one.key)]

    def _remove_document(self, document_id: str) -> None:
        for page in self._listed(tag_of(document_id)):
            self._delete([kept.key for kept in page])

    def _delete(self, keys: Sequence[str]) -> None:
        if not keys:
            return
        objects = [{"Key": self._key_of(key)} for key in keys]
        answer = self._client.delete_objects(Bucket=self._location.name, Delete={"Objects": objects, "Quiet": True})
        # What could not be removed is told in an answer that counts as a success.
        for fault in answer.get("Errors", []):
            raise ClientError({"Error": fault}, "DeleteObjects")

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
