"""Texts as every kind of store can hold them."""

from collections.abc import Iterator
from itertools import chain

import msgspec

from resources.artifact_store.artifact import Chunk
from resources.store.store import DocumentBuild

_REPLACEMENT = "\ufffd"


def storable_build(build: DocumentBuild) -> DocumentBuild:
    """The document with every NUL and lone surrogate in its texts replaced: hardly a database holds both.

    Ids, tenant and source are left alone, since two could become one; such a document is refused when it is written.
    """
    if all(_is_storable(text) for text in _texts_of(build)):
        return build
    return msgspec.structs.replace(
        build,
        title=_storable(build.title),
        chunks=[_storable_chunk(chunk) for chunk in build.chunks],
        entries=[msgspec.structs.replace(entry, text=_storable(entry.text)) for entry in build.entries],
    )


def _texts_of(build: DocumentBuild) -> Iterator[str]:
    yield build.title
    for chunk in build.chunks:
        yield from chain((chunk.text, chunk.place.sheet or ""), chunk.place.headings)
    for entry in build.entries:
        yield entry.text


def _storable_chunk(chunk: Chunk) -> Chunk:
    place = msgspec.structs.replace(
        chunk.place,
        headings=tuple(_storable(heading) for heading in chunk.place.headings),
        sheet=None if chunk.place.sheet is None else _storable(chunk.place.sheet),
    )
    return msgspec.structs.replace(chunk, text=_storable(chunk.text), place=place)


def _is_storable(text: str) -> bool:
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _storable(text: str) -> str:
    return "".join(_REPLACEMENT if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)
