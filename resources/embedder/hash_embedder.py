"""Vectors out of a hash: no meaning in them, but the same ones everywhere and at once. For tests and benchmarks."""

import hashlib
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from resources.embedder.embedder import Embedder, Vectors


class HashEmbedder(Embedder):
    """Each text's vector is its BLAKE2b hash, taken as 64 numbers from -1 to 1 and normalised."""

    name: ClassVar[str] = "hash"
    version: ClassVar[str] = "1"
    dimension: ClassVar[int] = 64

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts. See `Embedder.embed`."""
        raw = b"".join(hashlib.blake2b(text.encode(), digest_size=self.dimension).digest() for text in texts)
        numbers = np.frombuffer(raw, dtype=np.uint8).reshape(len(texts), self.dimension)
        vectors = numbers.astype(np.float32) / np.float32(127.5) - np.float32(1)
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit
