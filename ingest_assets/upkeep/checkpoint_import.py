"""Takes over what another tool has extracted, told by a folder of savepoints: one empty file for each finished node.

A document all of whose nodes have a savepoint counts as extracted. Its chunks are where that tool put them, not here,
so it is due in no store of ours until somebody asks for one or its content changes. The savepoints are only read.
"""

import codecs
import json
import os
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.document_state_store import DocumentStateStore
from resources.document_state.model import DocStatus, Presence, Status

_SAVE_POINTS = "save_points"
_CHUNK = 2_000


class CheckpointError(ValueError):
    """The savepoints or the file of nodes cannot be used."""


class Checkpoint(msgspec.Struct, frozen=True):
    """The nodes a tool has finished under one name."""

    name: str
    nodes: frozenset[str]


class NodesOfDocument(msgspec.Struct, frozen=True):
    """Which nodes make up a document."""

    document: str
    nodes: list[str]


class Candidate(msgspec.Struct, frozen=True):
    """A document of a file of nodes: the ids it may have here, the likeliest first, and its nodes."""

    ids: list[str]
    nodes: list[str]


class Imported(msgspec.Struct):
    """What became of the documents of a file of nodes, by the name they have there.

    Attributes:
        extracted: all nodes are there; they count as extracted now.
        already: they were complete before, or have been extracted here, or stand there by another name as well.
        incomplete: a node is missing, or none is named; they stay as they are.
        busy: a worker holds them, or somebody changed them meanwhile.
        unknown: no source lists them.
    """

    extracted: list[str]
    already: list[str]
    incomplete: list[str]
    busy: list[str]
    unknown: list[str]


def read_checkpoint(folder: Path, name: str = "") -> Checkpoint:
    """The savepoints below a folder, which may be the checkpoint's own, `save_points`, or the one around it.

    Args:
        folder: where they are.
        name: which of several checkpoints.

    Raises:
        CheckpointError: there is no such folder, or there are several checkpoints and none is named.
    """
    root = folder / _SAVE_POINTS if (folder / _SAVE_POINTS).is_dir() else folder
    if not root.is_dir():
        raise CheckpointError(f"{folder} is no folder. Name the one with '{_SAVE_POINTS}' in it.")
    names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False))
    if name and name not in names:
        raise CheckpointError(f"{root} has no checkpoint '{name}'. Known: {', '.join(names) or 'none'}.")
    if not name and len(names) > 1:
        raise CheckpointError(f"{root} has several checkpoints: {', '.join(names)}. Choose one with --name.")
    chosen = root / (name or names[0]) if name or names else root
    nodes = frozenset(entry.name for entry in os.scandir(chosen) if entry.is_file(follow_symlinks=False))
    return Checkpoint(chosen.name, nodes)


def read_nodes(file: Path) -> list[NodesOfDocument]:
    """Which nodes belong to which document.

    Args:
        file: one JSON object `{"document": ["node", …], …}`, or JSON Lines of `{"document": "…", "nodes": ["…"]}`.

    Raises:
        CheckpointError: it is neither, or names a document twice.
    """
    try:
        raw = file.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}.") from error
    whole = _read_object(raw)
    found = _read_lines(file, raw) if whole is None else whole
    if not found:
        raise CheckpointError(f"{file} names no document.")
    names = [item.document for item in found]
    if len(set(names)) < len(names):
        doubled = next(name for name, n in Counter(names).items() if n > 1)
        raise CheckpointError(f"{file} names document '{doubled}' twice.")
    return found


async def import_checkpoint(
    state: DocumentStateStore, checkpoint: Checkpoint, documents: Mapping[str, Candidate]
) -> Imported:
    """Make records of documents that are complete elsewhere count as extracted. Safe to repeat.

    They go the way of all documents: claimed, extracted, released. A claim that is left by dying has no worker, and
    the next sweep releases it.

    Args:
        state: where the records are; a document without one is unknown.
        checkpoint: the finished nodes.
        documents: by the name they have in the file of nodes.
    """
    result = Imported([], [], [], [], [])
    run_id = f"import-{uuid.uuid4()}"
    steps: tuple[Callable[[str, DocStatus], DocStatus], ...] = (
        lambda _, doc: transitions.claimed(doc, run_id, run_id, utc_now(), extract=True),
        lambda name, doc: transitions.extracted_elsewhere(doc, checkpoint.name, len(documents[name].nodes), utc_now()),
        lambda _, doc: transitions.released(doc, utc_now()),
    )
    names = list(documents)
    for start in range(0, len(names), _CHUNK):
        chunk = {name: documents[name] for name in names[start : start + _CHUNK]}
        complete = stored = await _complete_ones(state, checkpoint, chunk, result)
        for step in steps:
            stored = await _publish(state, stored, step)
        result.extracted += stored
        result.busy += [name for name in complete if name not in stored]
    return result


async def _complete_ones(
    state: DocumentStateStore, checkpoint: Checkpoint, documents: Mapping[str, Candidate], result: Imported
) -> dict[str, DocStatus]:
    """Those that can be completed now, by name; the others are sorted into the result."""
    known = await state.get_many({key for candidate in documents.values() for key in candidate.ids})
    docs = {
        name: next((known[key] for key in candidate.ids if key in known), None) for name, candidate in documents.items()
    }
    lacking = {  # a document that stands there by several names lacks what it lacks by any of them
        doc.document_id
        for name, doc in docs.items()
        if doc and not (documents[name].nodes and checkpoint.nodes.issuperset(documents[name].nodes))
    }
    complete: dict[str, DocStatus] = {}
    taken: set[str] = set()
    for name, doc in docs.items():
        if doc is None or doc.presence is not Presence.PRESENT:
            result.unknown.append(name)
        elif doc.extraction.status is Status.COMPLETED or doc.links or doc.artifact or doc.document_id in taken:
            result.already.append(name)
        elif doc.document_id in lacking:
            result.incomplete.append(name)
        elif doc.claim is not None:
            result.busy.append(name)
        else:
            complete[name] = doc
            taken.add(doc.document_id)
    return complete


async def _publish(
    state: DocumentStateStore, docs: Mapping[str, DocStatus], step: Callable[[str, DocStatus], DocStatus]
) -> dict[str, DocStatus]:
    """Take documents one step further; gives those whose write went through, by name."""
    stored = await state.set_many([(step(name, doc), doc) for name, doc in docs.items()])
    return {name: doc for name, doc in zip(docs, stored, strict=True) if doc is not None}


def _read_object(raw: bytes) -> list[NodesOfDocument] | None:
    """The documents of one JSON object, one that is named twice included twice; None if it is no such object."""
    try:
        pairs = json.loads(raw, object_pairs_hook=list)
        return [NodesOfDocument(name, msgspec.convert(nodes, list[str])) for name, nodes in pairs]
    except (ValueError, TypeError, msgspec.MsgspecError):
        return None


def _read_lines(file: Path, raw: bytes) -> list[NodesOfDocument]:
    found = []
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(msgspec.json.decode(line, type=NodesOfDocument))
        except msgspec.MsgspecError as error:
            raise CheckpointError(
                f'{file}, line {number}: {error}. Write one JSON object {{"document": ["node", …]}}, or a line '
                '{"document": "…", "nodes": ["…"]} for each document.'
            ) from error
    return found
