"""What must be written so that documents stand as given: a comparison of rows, without any I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from resources.artifact_store.artifact import Chunk, Entry, Place
from resources.store.store import BuildResult, DocumentBuild, Removal


class RowId(NamedTuple):
    """A chunk or an entry, named within its document."""

    document_id: str
    id: str


class Placement(NamedTuple):
    """Everything about a chunk that may change while its text, its id and its vector stay."""

    org_id: str
    source: str
    ordinal: int
    start: int
    end: int
    headings: tuple[str, ...]
    page: int | None
    last_page: int | None
    sheet: str | None
    row: int | None
    last_row: int | None

    @classmethod
    def at(cls, org_id: str, source: str, ordinal: int, place: Place) -> Self:
        """That of a chunk at a place of its document, the `ordinal`th there."""
        return cls(
            org_id,
            source,
            ordinal,
            place.start,
            place.end,
            place.headings,
            place.page,
            place.last_page,
            place.sheet,
            place.row,
            place.last_row,
        )


class PlacedChunk(NamedTuple):
    """A chunk at its position in its document."""

    build: DocumentBuild
    ordinal: int
    chunk: Chunk

    def placement(self) -> Placement:
        """Where it stands."""
        return Placement.at(self.build.org_id, self.build.source, self.ordinal, self.chunk.place)


class PlacedEntry(NamedTuple):
    """An entry in its document."""

    document_id: str
    entry: Entry


class DocumentRow(NamedTuple):
    """A document's own row."""

    document_id: str
    org_id: str
    source: str
    source_uri: str
    title: str
    fencing_token: int
    chunkset_hash: str
    n_chunks: int
    n_entries: int

    @classmethod
    def of(cls, build: DocumentBuild) -> "DocumentRow":
        """The row of a document that stands as given."""
        return cls(
            build.document_id,
            build.org_id,
            build.source,
            build.source_uri,
            build.title,
            build.fencing_token,
            build.chunkset_hash,
            len(build.chunks),
            len({entry.entry_id for entry in build.entries}),
        )


@dataclass(frozen=True)
class Held:
    """What a store holds of the documents in question, by document id."""

    documents: Mapping[str, DocumentRow]
    removed_tokens: Mapping[str, int]
    chunks: Mapping[str, Mapping[str, Placement]]
    entries: Mapping[str, frozenset[str]]

    def is_fenced(self, document_id: str, fencing_token: int) -> bool:
        """Whether a newer claim than this one has written or removed the document."""
        newest = self.newest_token(document_id)
        return newest > fencing_token

    def newest_token(self, document_id: str) -> int:
        """The token of the newest claim that has written or removed the document; 0: none has."""
        row = self.documents.get(document_id)
        return max(row.fencing_token if row else 0, self.removed_tokens.get(document_id, 0))


@dataclass
class Changes:
    """The rows to write and to remove, and what to report for each document.

    `rewritten` are documents of which every row that is held goes before anything else.
    """

    documents: list[DocumentBuild] = field(default_factory=list)
    new_chunks: list[PlacedChunk] = field(default_factory=list)
    moved_chunks: list[PlacedChunk] = field(default_factory=list)
    gone_chunks: list[RowId] = field(default_factory=list)
    new_entries: list[PlacedEntry] = field(default_factory=list)
    gone_entries: list[RowId] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    results: list[BuildResult] = field(default_factory=list)

    def is_empty(self) -> bool:
        """Whether the store stands as given already."""
        return not (self.documents or self.new_chunks or self.moved_chunks or self.gone_chunks) and not (
            self.new_entries or self.gone_entries
        )


def changes_between(held: Held, builds: Sequence[DocumentBuild]) -> Changes:
    """Compare what is held with what shall stand there; fenced documents change nothing."""
    changes = Changes()
    for build in builds:
        if held.is_fenced(build.document_id, build.fencing_token):
            held_token = held.newest_token(build.document_id)
            changes.results.append(BuildResult(build.document_id, fenced=True, held_token=held_token))
        else:
            _add_document(changes, held, build)
    return changes


def removals_allowed(
    held: Held, n_chunks: Mapping[str, int], removals: Sequence[Removal]
) -> tuple[list[Removal], list[BuildResult]]:
    """The removals that have something to do, and what to report for each one asked for."""
    to_apply = []
    results = []
    for removal in removals:
        fenced = held.is_fenced(removal.document_id, removal.fencing_token)
        if fenced:
            held_token = held.newest_token(removal.document_id)
            results.append(BuildResult(removal.document_id, fenced=True, held_token=held_token))
        else:
            results.append(BuildResult(removal.document_id, n_removed=n_chunks.get(removal.document_id, 0)))
        if not fenced:
            # Also where it is removed already: chunks and entries of no document may have been left there.
            to_apply.append(removal)
    return to_apply, results


def _add_document(changes: Changes, held: Held, build: DocumentBuild) -> None:
    document_id = build.document_id
    if build.rewrite:
        changes.rewritten.append(document_id)
        changes.documents.append(build)
        _add_entries(changes, frozenset(), build)
        changes.results.append(_add_chunks(changes, {}, build))
        return
    if held.documents.get(document_id) != DocumentRow.of(build) or document_id in held.removed_tokens:
        changes.documents.append(build)
    _add_entries(changes, held.entries.get(document_id, frozenset()), build)
    changes.results.append(_add_chunks(changes, held.chunks.get(document_id, {}), build))


def _add_chunks(changes: Changes, held: Mapping[str, Placement], build: DocumentBuild) -> BuildResult:
    n_written = 0
    for ordinal, chunk in enumerate(build.chunks):
        placed = PlacedChunk(build, ordinal, chunk)
        old = held.get(chunk.chunk_id)
        if old is None:
            changes.new_chunks.append(placed)
            n_written += 1
        elif old != placed.placement():
            changes.moved_chunks.append(placed)
    gone = held.keys() - {chunk.chunk_id for chunk in build.chunks}
    changes.gone_chunks.extend(RowId(build.document_id, chunk_id) for chunk_id in sorted(gone))
    return BuildResult(
        build.document_id, n_written=n_written, n_kept=len(build.chunks) - n_written, n_removed=len(gone)
    )


def _add_entries(changes: Changes, held: frozenset[str], build: DocumentBuild) -> None:
    wanted = {entry.entry_id: entry for entry in build.entries}
    changes.new_entries.extend(
        PlacedEntry(build.document_id, entry) for entry_id, entry in wanted.items() if entry_id not in held
    )
    changes.gone_entries.extend(RowId(build.document_id, entry_id) for entry_id in sorted(held - wanted.keys()))
