"""What a document's record says of its artifact, so that documents are listed and compared without reading any."""

import msgspec

from resources.artifact_store.artifact import Artifact, artifact_hash
from resources.artifact_store.corrections import warnings_of


class ArtifactSummary(msgspec.Struct, frozen=True):
    """An artifact in its document's record, under the names that `DocStatus` has; by default: there is none."""

    artifact: str = ""
    artifact_hash: str = ""
    chunkset_hash: str = ""
    title: str = ""
    media_type: str = ""
    parser: str = ""
    n_chunks: int = 0
    n_entries: int = 0
    n_chars: int = 0
    n_pages: int = 0
    n_empty_pages: int = 0
    warnings: tuple[str, ...] = ()

    def fields(self) -> dict[str, object]:
        """Field by field, as a record takes them."""
        return msgspec.structs.asdict(self)


def summary_of(artifact: Artifact, key: str, n_pages: int = 0, n_empty_pages: int = 0) -> ArtifactSummary:
    """The summary of an artifact that is kept under a key; of the pages, and those without text, it does not know."""
    return ArtifactSummary(
        artifact=key,
        artifact_hash=artifact_hash(artifact),
        chunkset_hash=artifact.chunkset_hash,
        title=artifact.title,
        media_type=artifact.media_type,
        parser=artifact.parser,
        n_chunks=len(artifact.chunks),
        n_entries=len(artifact.entries),
        n_chars=artifact.n_chars,
        n_pages=n_pages,
        n_empty_pages=n_empty_pages,
        warnings=warnings_of(artifact),
    )
