"""What a command is about: every source, or just what some paths name."""

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from ingest_assets.components import Components
from ingest_assets.requests.asking import Asked
from resources.document_source.document_ids import is_below, source_uri
from resources.document_source.document_source import DocumentSource
from resources.document_source.overlap import Overlap, overlaps
from resources.document_state.label import DocumentLabel
from resources.document_state.model import DocStatus, Presence, Status
from resources.document_state.take_up import Mode, is_held_back, is_taken_up


class NoSuchPathError(ValueError):
    """A path on the command line does not exist."""


class Part(msgspec.Struct, frozen=True):
    """A source, or what of it lies under a key prefix ("" for all)."""

    source: DocumentSource
    prefix: bytes

    def contains(self, doc: DocStatus) -> bool:
        """Whether a document lies in it."""
        if doc.source != self.source.name:
            return False
        return not self.prefix or is_below(doc.source_uri, source_uri(self.source.name, self.prefix))


class Selected(msgspec.Struct, frozen=True):
    """The documents a request works on, and how many it does not need to or cannot."""

    document_ids: list[str]
    n_unchanged: int = 0
    n_busy: int = 0
    n_failed_before: int = 0


async def parts_of(components: Components, paths: Sequence[str], *, remember: bool) -> list[Part]:
    """The parts of sources that paths name; without paths, every source.

    Args:
        components: for the sources.
        paths: files, folders or `s3://bucket/key`. One inside a source is that part of it; another folder becomes a
            source of its own, a bucket does not.
        remember: write a new source down, so that the sensors list it too.

    Raises:
        NoSuchPathError: a path does not exist, or nothing but a declaration can make it a source.
    """
    sources = await components.sources()
    if not paths:
        return [Part(source, b"") for source in sources.values()]
    return [await _part_of(components, sources, path, remember=remember) for path in paths]


async def overlaps_of(components: Components, parts: Sequence[Part]) -> list[Overlap]:
    """The sources of some parts that list what another source does."""
    sources = {**await components.sources(), **{part.source.name: part.source for part in parts}}
    return overlaps(sources.values(), {part.source.name for part in parts})


async def select(
    components: Components,
    parts: Sequence[Part],
    mode: Mode,
    now: datetime,
    *,
    whole: bool,
    n_listed: int | None = None,
    fresh: Sequence[str] = (),
    force: bool = False,
) -> Selected:
    """Which documents of some parts a request of this mode works on. Costs what is open, not what there is.

    Args:
        components: for the state.
        parts: where.
        mode: which request.
        now: the time.
        whole: the parts are everything there is, so nothing needs to be read to see where a document lies.
        n_listed: how many objects the parts have; None: it is not known.
        fresh: ids that a listing has just made due; an index that lags does not know them yet.
        force: every document that is present and free. This one does cost what there is.
    """
    state = components.state
    labels = await state.open_labels()
    if whole:
        open_docs = dict(labels)
        candidates = await state.list_due(now, None)
        candidates += sorted({key for key, label in labels.items() if _is_held_back(label)} - set(candidates))
    else:
        docs = await _open_in(components, parts, labels)
        open_docs = {key: labels[key] for key in docs}
        candidates = [key for key, doc in docs.items() if is_taken_up(doc, mode, now)]
    if force:
        candidates = [doc.document_id async for doc in _free_in(components, parts)]
    elif mode is Mode.RETRY_FAILED:
        candidates = [key for key, label in open_docs.items() if _has_failed(label) and not label.claimed]
    known = set(candidates)
    candidates += [key for key in fresh if key not in known]
    n_busy = sum(label.claimed for label in open_docs.values())
    n_failed = sum(_has_failed(label) for label in open_docs.values())
    gone = {key for key, label in open_docs.items() if label.presence is not Presence.PRESENT}
    if n_listed is None and whole and mode is not Mode.RETRY_FAILED:
        n_listed = sum(n for label, n in (await state.counts()).items() if label.presence is Presence.PRESENT)
    n_unchanged = (n_listed or 0) - n_busy - sum(key not in gone and key not in state.damaged for key in candidates)
    return Selected(candidates, max(0, n_unchanged), n_busy, n_failed)


async def select_asked(components: Components, asked: Asked, parts: Sequence[Part], *, whole: bool) -> Selected:
    """The documents of some parts that somebody asks for. Costs the labels there are, and what fits."""
    state, configured = components.state, await components.configured()
    n_busy = sum(n for label, n in (await state.counts()).items() if label.claimed and asked.fits(label, configured))
    ids = await state.list_ids(lambda label: not label.claimed and asked.fits(label, configured))
    if not whole:
        docs = await state.get_many(ids)
        ids = [key for key in ids if key in docs and any(part.contains(docs[key]) for part in parts)]
    return Selected(ids, n_busy=n_busy)


def pages_of(document_ids: Sequence[str], size: int) -> list[Sequence[str]]:
    """A job's documents cut into what one run does."""
    return [document_ids[start : start + size] for start in range(0, len(document_ids), size)]


async def _open_in(
    components: Components, parts: Sequence[Part], labels: Mapping[str, DocumentLabel]
) -> dict[str, DocStatus]:
    """The open documents that lie in some parts."""
    names = {part.source.name for part in parts}
    docs = await components.state.get_many([key for key, label in labels.items() if label.source in names])
    return {key: doc for key, doc in docs.items() if any(part.contains(doc) for part in parts)}


async def _free_in(components: Components, parts: Sequence[Part]) -> AsyncIterator[DocStatus]:
    """Every present document of some parts that nobody holds."""
    names = {part.source.name for part in parts}
    present = components.state.iter_statuses(
        lambda label: label.source in names and label.presence is Presence.PRESENT and not label.claimed
    )
    async for doc in present:
        if any(part.contains(doc) for part in parts):
            yield doc


def _is_held_back(label: DocumentLabel) -> bool:
    return not label.claimed and is_held_back(label.presence, label.extraction, label.extraction_reason)


def _has_failed(label: DocumentLabel) -> bool:
    return label.presence is Presence.PRESENT and Status.FAILED in (label.extraction, label.build)


async def _part_of(components: Components, sources: dict[str, DocumentSource], path: str, *, remember: bool) -> Part:
    is_remote = path.startswith("s3://")
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - `..` is to be resolved, links are not
    if not is_remote and not os.path.lexists(absolute):
        raise NoSuchPathError(f"{path} does not exist. If it was removed, name its folder.")
    inside = _inside(sources.values(), path)
    if inside is not None:
        return inside
    if is_remote:
        raise NoSuchPathError(
            f"{path} lies in no source, and only a folder can become one by being named. Declare it in ingest.toml: "
            f'[[sources]] with a name and uri = "s3://bucket/prefix".'
        )
    if not absolute.is_dir() or absolute == absolute.parent:
        raise NoSuchPathError(f"{path} lies in no source, and only a folder can become one. Name its folder.")
    org_id = components.settings.org_id
    if not remember:
        return Part(components.folder(absolute.name, absolute, org_id), b"")
    declared = {source.name for source in components.settings.sources}
    known = await components.source_registry.remember(absolute, org_id, declared)
    source = sources[known.name] = components.folder(known.name, known.root, known.org_id)
    return Part(source, b"")


def _inside(sources: Iterable[DocumentSource], place: str) -> Part | None:
    """The innermost source a place lies in: the one in which its key is shortest."""
    keys = [(source, source.key_of_place(place)) for source in sources]
    parts = [Part(source, key.rstrip(b"/")) for source, key in keys if key is not None]
    return min(parts, key=lambda part: len(part.prefix), default=None)
