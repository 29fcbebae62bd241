"""Makes records again that were damaged or lost, from the source, the artifacts and the stores: nothing is extracted.

A document's source says which content is right, an artifact of just that content says what was made of it, and each
store what of that it holds.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

import msgspec

from ingest_assets.engine.build_stage import document_build
from resources.artifact_store.artifact import Artifact
from resources.artifact_store.artifact_store import ArtifactStore
from resources.artifact_store.corrections import corrections_of
from resources.document_source.document_ids import document_id
from resources.document_source.document_source import DocumentSource, ReadError, SourceError, SourceObject
from resources.document_state.artifact_summary import summary_of
from resources.document_state.mending import made_again
from resources.document_state.model import Corrections, DocStatus
from resources.document_state.transitions import discovered
from resources.store.content import expected_content
from resources.store.store import HeldContent

# What each store holds of some documents: by slug, then by document id.
Contents = Mapping[str, Mapping[str, HeldContent]]


class Found(msgspec.Struct, frozen=True):
    """Where documents are in their sources.

    Attributes:
        objects: by document id.
        errors: why a source could not be listed: of what was not found nothing may be concluded then.
    """

    objects: dict[str, tuple[DocumentSource, SourceObject]]
    errors: list[str]


class Rebuilder:
    """Finds documents in their sources, and makes their records again."""

    def __init__(
        self,
        sources: Mapping[str, DocumentSource],
        artifacts: ArtifactStore,
        link_parts: Mapping[str, Mapping[str, str]],
        max_bytes: int,
        *,
        may_extract: bool,
    ) -> None:
        """Take what is needed.

        Args:
            sources: the configured sources, by name.
            artifacts: where to look for what was extracted.
            link_parts: the configured stores, with the configuration's share of a link's fingerprint.
            max_bytes: how large a document may be.
            may_extract: a document without an artifact becomes due, so the next run extracts it, which may cost.
        """
        self._sources = sources
        self._artifacts = artifacts
        self._link_parts = link_parts
        self._max_bytes = max_bytes
        self._may_extract = may_extract

    @property
    def source_names(self) -> AbstractSet[str]:
        """The names of the configured sources."""
        return self._sources.keys()

    async def find_in_sources(self, document_ids: Collection[str]) -> Found:
        """Look for documents in the listings of all sources."""
        return await asyncio.to_thread(_find, self._sources.values(), document_ids)

    async def records(
        self, objects: Mapping[str, tuple[DocumentSource, SourceObject]], contents: Contents, now: datetime
    ) -> tuple[dict[str, DocStatus], dict[str, str]]:
        """The records of documents their sources have; and why there is none of the others.

        A worker holds the documents from before the call until the records are written (see `ArtifactStore.put_many`).
        """
        artifacts: defaultdict[str, list[tuple[str, Artifact]]] = defaultdict(list)
        for key, artifact in await asyncio.to_thread(lambda: list(self._artifacts.of_documents(list(objects)))):
            artifacts[artifact.document_id].append((key, artifact))
        made, problems = {}, {}
        for name, (source, listed) in objects.items():
            held = {slug: found.get(name) for slug, found in contents.items()}
            try:
                made[name] = await self._record(name, source, listed, artifacts[name], held, now)
            except (ReadError, _NoArtifactError) as error:
                problems[name] = str(error)
        return made, problems

    async def _record(
        self,
        name: str,
        source: DocumentSource,
        listed: SourceObject,
        artifacts: Sequence[tuple[str, Artifact]],
        held: Mapping[str, HeldContent | None],
        now: datetime,
    ) -> DocStatus:
        read = await asyncio.to_thread(source.read, listed.source_uri, self._max_bytes)
        holding = tuple(slug for slug, content in held.items() if content is not None)
        doc = discovered(
            name,
            source.org_id,
            source.name,
            listed.source_uri,
            read.content_version,
            listed.size,
            holding or tuple(self._link_parts),
            now,
        )
        content = hashlib.sha256(read.content).hexdigest()[:32]
        best = _best(doc, [(key, it) for key, it in artifacts if it.parts.get("content") == content], held)
        token = max((found.fencing_token for found in held.values() if found), default=0)
        if best is None:
            if not self._may_extract:
                raise _NoArtifactError("No artifact of its content is whole: --re-extract has it extracted again.")
            return msgspec.structs.replace(doc, token=token)
        _, artifact = best
        # Under a name that nobody may take for garbage: the one it was found by may be swept any moment.
        [key] = await asyncio.to_thread(self._artifacts.put_many, [artifact])
        right = {slug: self._link_parts[slug] for slug in _right(doc, artifact, held)}
        return made_again(
            doc,
            summary_of(artifact, key),
            now,
            parts=artifact.parts,
            corrections=_corrections(artifact),
            holding=right,
            token=token,
        )


def _find(sources: Collection[DocumentSource], document_ids: Collection[str]) -> Found:
    wanted = set(document_ids)
    found = Found({}, [])
    for source in sources:
        try:
            for listed in source.list_objects():
                key = document_id(source.org_id, listed.source_uri)
                if key in wanted:
                    found.objects[key] = (source, listed)
        except SourceError as error:
            found.errors.append(str(error))
    return found


class _NoArtifactError(Exception):
    """What extraction made of a document is not there."""


def _corrections(artifact: Artifact) -> Corrections | None:
    """What people corrected in it; of whoever has taken corrections back it knows nothing."""
    made = [chunk.correction for chunk in corrections_of(artifact) if chunk.correction is not None]
    last = max(made, key=lambda correction: correction.at, default=None)
    return None if last is None else Corrections(len(made), last.by, last.at)


def _best(
    doc: DocStatus, artifacts: Sequence[tuple[str, Artifact]], held: Mapping[str, HeldContent | None]
) -> tuple[str, Artifact] | None:
    """Of several artifacts of one content the one that most stores hold, then the one with most corrections."""

    def rank(candidate: tuple[str, Artifact]) -> tuple[int, int, str]:
        key, artifact = candidate
        return len(list(_right(doc, artifact, held))), len(corrections_of(artifact)), key

    return max(artifacts, key=rank, default=None)


def _right(doc: DocStatus, artifact: Artifact, held: Mapping[str, HeldContent | None]) -> Iterator[str]:
    expected = expected_content(document_build(doc, artifact, {}))
    for slug, content in held.items():
        if content is not None and not content.faults and content.content_hash == expected:
            yield slug
