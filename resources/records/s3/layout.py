"""How a prefix is laid out: its format and number of shards, in `format.json`, which never changes once it is made."""

import re
from typing import Annotated
from urllib.parse import quote, unquote

import msgspec

from resources.records.backend import BackendCorruptError, BackendUnavailableError
from resources.records.s3.bucket import Bucket, NoBody, Refusal

FORMAT = 1
FORMAT_FILE = "format.json"
SHARDS = 64
MOST_SHARDS = 256
BASE_ID = re.compile(r"[0-9a-f]{16}")
_SUFFIX = ".jsonl.zst"
_ATTEMPTS = 3


class Layout(msgspec.Struct, frozen=True):
    """What `format.json` says."""

    format: Annotated[int, msgspec.Meta(ge=1)]
    shards: Annotated[int, msgspec.Meta(ge=1, le=MOST_SHARDS)]


class _Format(msgspec.Struct):
    """What any version's `format.json` says."""

    format: int


def folder_of(kind: str) -> str:
    """What the names of a kind's objects begin with."""
    return f"{quote(kind, safe='')}/"


def shard_prefix(kind: str, shard: int) -> str:
    """What the names of a shard's objects begin with."""
    return f"{folder_of(kind)}{shard:03}"


def object_of(kind: str, shard: int) -> str:
    """The name of a shard's object, its head if it has a base."""
    return f"{shard_prefix(kind, shard)}{_SUFFIX}"


def base_of(kind: str, shard: int, base_id: str) -> str:
    """The name of the object of a base, which no shard's has."""
    return f"{shard_prefix(kind, shard)}-{base_id}{_SUFFIX}"


def is_base_of(kind: str, shard: int, name: str) -> bool:
    """Whether a name is that of a base of a shard, and no other program's."""
    base_id = name.removesuffix(_SUFFIX).rpartition("-")[2]
    return bool(BASE_ID.fullmatch(base_id)) and base_of(kind, shard, base_id) == name


def shard_named(name: str) -> tuple[str, int] | None:
    """The kind and shard whose object has this name; None: it is not ours."""
    folder, _, file = name.rpartition("/")
    number = file.removesuffix(_SUFFIX)
    if not (number.isascii() and number.isdecimal()):
        return None
    kind = unquote(folder)
    return (kind, int(number)) if object_of(kind, int(number)) == name else None


def read_layout(bucket: Bucket) -> Layout | None:
    """The layout of a prefix; None: it has none yet.

    Raises:
        BackendCorruptError: it cannot be read, or a newer version made it.
        BackendError: by what went wrong.
    """
    found = bucket.get(FORMAT_FILE)
    if isinstance(found, NoBody):
        return None
    try:
        made_by = msgspec.json.decode(found.body, type=_Format).format
        if made_by > FORMAT:
            known = f"this version reads up to {FORMAT}. Upgrade ingest-assets"
            raise BackendCorruptError(bucket.uri, f"{FORMAT_FILE} has format {made_by}; {known}.")
        return msgspec.json.decode(found.body, type=Layout)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BackendCorruptError(bucket.uri, f"{FORMAT_FILE}: {error}. Restore it.") from error


def make_layout(bucket: Bucket, shards: int) -> Layout:
    """Make the layout, unless the prefix has one; then that one.

    Whoever made it, even a request of ours that was thought lost: the first stays, and is read.

    Raises:
        BackendError: by what went wrong.
    """
    lost: BackendUnavailableError | None = None
    for _ in range(_ATTEMPTS):
        try:
            if not isinstance(bucket.put(FORMAT_FILE, msgspec.json.encode(Layout(FORMAT, shards)), ""), Refusal):
                return Layout(FORMAT, shards)
        except BackendUnavailableError as error:
            lost = error
        found = read_layout(bucket)
        if found is not None:
            return found
    raise lost or BackendUnavailableError(bucket.uri, f"{FORMAT_FILE} comes and goes. Try again.")
