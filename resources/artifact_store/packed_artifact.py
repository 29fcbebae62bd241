"""An artifact as bytes: compressed JSON under a name with the hash of that JSON, the same in every kind of store."""

import hashlib
import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import zstandard

from resources.artifact_store.artifact import Artifact
from resources.artifact_store.artifact_key import artifact_key, digest_of

_logger = logging.getLogger(__name__)

LARGEST_BODY = 1 << 30


class PackedArtifact(NamedTuple):
    """What is kept of an artifact."""

    key: str
    document_id: str
    body: bytes


def pack(artifacts: Sequence[Artifact], generation: int) -> list[PackedArtifact]:
    """Pack artifacts, in order, under names of a generation."""
    encoder, compressor = msgspec.json.Encoder(), zstandard.ZstdCompressor(level=1)
    packed = []
    for artifact in artifacts:
        raw = encoder.encode(artifact)
        key = artifact_key(artifact.document_id, generation, hashlib.sha256(raw).hexdigest())
        packed.append(PackedArtifact(key, artifact.document_id, compressor.compress(raw)))
    return packed


def unpack_whole(bodies: Iterable[tuple[str, bytes]], where: str) -> dict[str, Artifact]:
    """Unpack bodies by key; one that is not what its key says is left out, with a warning.

    Args:
        bodies: keys and bodies.
        where: the store, as it is shown.
    """
    decompressor, decoder = zstandard.ZstdDecompressor(), msgspec.json.Decoder(Artifact)
    artifacts = {}
    for key, body in bodies:
        try:
            raw = decompressor.decompress(body, max_output_size=LARGEST_BODY)
            if hashlib.sha256(raw).hexdigest() == digest_of(key):
                artifacts[key] = decoder.decode(raw)
        except (zstandard.ZstdError, msgspec.MsgspecError):
            pass
        if key not in artifacts:
            _logger.warning("Artifact %s in %s is damaged. Its document is extracted again.", key, where)
    return artifacts
