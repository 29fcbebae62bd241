"""An answer in a bucket: the packed result and the documents that use it. A change is a function of the bytes."""

import secrets
from collections.abc import Callable, Collection

import msgspec

from resources.artifact_store.paid_results.paid_result import PaidResult, pack, unpack

Transform = Callable[[bytes | None], bytes | None]


class _Kept(msgspec.Struct, frozen=True):
    """The object. `change` makes each state of it other bytes, so that an ETag never returns."""

    document_ids: tuple[str, ...]
    packed: bytes
    change: str


class KeptAnswer(msgspec.Struct, frozen=True):
    """An object that is whole."""

    document_ids: tuple[str, ...]
    packed: bytes
    result: PaidResult


def decoded(key: str, body: bytes) -> KeptAnswer | None:
    """What an object holds; None if it is damaged."""
    try:
        kept = msgspec.msgpack.decode(body, type=_Kept)
    except msgspec.MsgspecError:
        return None
    result = unpack(key, kept.packed)
    return None if result is None else KeptAnswer(kept.document_ids, kept.packed, result)


def with_result(result: PaidResult, document_ids: Collection[str]) -> Transform:
    """The result is there, and used by the documents; a whole one that was there before stands."""

    def transform(body: bytes | None) -> bytes | None:
        kept = decoded(result.key, body) if body is not None else None
        if kept is None:
            return _encoded(tuple(document_ids), pack(result))
        return _used_by(kept, document_ids)

    return transform


def with_documents(key: str, document_ids: Collection[str]) -> Transform:
    """The result, if it is there, is used by the documents too."""

    def transform(body: bytes | None) -> bytes | None:
        kept = decoded(key, body) if body is not None else None
        return None if kept is None else _used_by(kept, document_ids)

    return transform


def without_document(key: str, document_id: str) -> Transform:
    """The result is not used by the document."""

    def transform(body: bytes | None) -> bytes | None:
        kept = decoded(key, body) if body is not None else None
        if kept is None or document_id not in kept.document_ids:
            return None
        return _encoded(tuple(other for other in kept.document_ids if other != document_id), kept.packed)

    return transform


def _used_by(kept: KeptAnswer, document_ids: Collection[str]) -> bytes | None:
    new = tuple(document_id for document_id in document_ids if document_id not in kept.document_ids)
    return _encoded((*kept.document_ids, *new), kept.packed) if new else None


def _encoded(document_ids: tuple[str, ...], packed: bytes) -> bytes:
    return msgspec.msgpack.encode(_Kept(document_ids, packed, secrets.token_urlsafe(8)))
