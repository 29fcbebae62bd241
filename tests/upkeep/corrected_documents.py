"""Documents whose chunks are corrected by several processes; what a process runs is here, so that it is importable."""

import asyncio
import os
import signal
from pathlib import Path

import msgspec

from ingest_assets.components import Components
from ingest_assets.settings import Settings
from ingest_assets.upkeep.correcting import edit_chunks
from ingest_assets.upkeep.edits import Edit
from resources.artifact_store.artifact import Artifact, Piece, Place, chunks_of, chunkset_hash
from resources.artifact_store.corrections import ChunkChangedError, Signature
from resources.artifact_store.sqlite_artifact_store import SqliteArtifactStore
from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.artifact_summary import summary_of
from resources.records.record import Write
from resources.records.uri import open_backend
from tests.document_state.documents import POLICY, claimed, ingested, new

DID = "did"  # a kind of record: who did what


def components_of(folder: Path, uri: str = "") -> Components:
    """The parts of a project below a folder, its state where a URI says."""
    settings = Settings(base=folder, default_embedder="hash", document_state_store=uri)
    return Components(settings, open_backend(settings.state_uri, Path("/")))


async def published(components: Components, texts, document_id: str = "a", stores=("default",)) -> None:
    """A document with these chunks, extracted and standing in stores, as a run leaves it."""
    chunks = chunks_of(document_id, [Piece(text, Place(i, i + 1)) for i, text in enumerate(texts)])
    artifact = Artifact(document_id, "Title", "text/plain", "plain", chunkset_hash(chunks), chunks, ())
    [key] = components.artifacts.put_many([artifact])
    extracted = transitions.extracted(
        claimed(new(document_id, stores)), summary_of(artifact, key), utc_now(),
        parts={"content": "c", **components.extraction_parts}, content_version="v1", n_corrections=0,
    )  # fmt: skip
    links = {slug: ingested(extracted, slug) for slug in stores}
    if "default" in links:
        parts = {"content": extracted.artifact_hash, **(await components.configured()).stores["default"]}
        links["default"] = msgspec.structs.replace(links["default"], parts=parts)
    await components.state.set_status(document_id, transitions.built(extracted, links, utc_now(), POLICY))


def edits_of(artifact: Artifact, **texts: str) -> list[Edit]:
    """Lines that give chunks other texts, by the texts they have now."""
    return [Edit(i, c.chunk_id, texts[c.text]) for i, c in enumerate(artifact.chunks, 1) if c.text in texts]


def correct_together(uri: str, together, folder: str, edits: list[list[Edit]]) -> None:
    """Make one of several lists of edits, each process another, and write down how that ended."""

    async def go() -> None:
        components = components_of(Path(folder), uri)
        me = together.wait()
        try:
            await edit_chunks(components, "a", edits[me], Signature(f"person {me}", utc_now()), patience=60)
        except ChunkChangedError as error:
            ended = str(error)
        else:
            ended = "done"
        await components.backend.compare_and_set(DID, [Write(f"person {me}", ended.encode(), None)])
        await components.backend.close()

    asyncio.run(go())


class DiesWhenKept(SqliteArtifactStore):
    """Kills its process when artifacts are kept, before anybody can refer to them."""

    def put_many(self, artifacts):
        """See ArtifactStore."""
        super().put_many(artifacts)
        os.kill(os.getpid(), signal.SIGKILL)


def correct_and_die(folder: str, document_id: str, edits: list[Edit]) -> None:
    """Correct chunks in a process that is killed between the artifact and the record."""

    async def go() -> None:
        components = components_of(Path(folder))
        components.artifacts = DiesWhenKept(Path(folder) / ".ingest" / "artifacts" / "artifacts.db")
        await edit_chunks(components, document_id, edits, Signature("ann", utc_now()))

    asyncio.run(go())
