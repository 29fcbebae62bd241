"""The port through which chunk texts become vectors."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class EmbedderStamp(msgspec.Struct, frozen=True):
    """Which embedder a store's vectors come from; recorded with the data at the first write."""

    name: str
    version: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.dimension} dimensions)"


class EmbedderError(Exception):
    """An embedder did not do what it promises. `embedder` is its name."""

    def __init__(self, embedder: str, message: str) -> None:
        super().__init__(f"Embedder '{embedder}': {message}")
        self.embedder = embedder


class Embedder(ABC):
    """Turns texts into unit vectors.

    A store records `name`, `version` and `dimension` with its data and refuses vectors of another embedder. They are
    attributes of the class, and a model is loaded at the first `embed`, so asking for the stamp costs nothing.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    dimension: ClassVar[int]

    @classmethod
    def stamp(cls) -> EmbedderStamp:
        """Name, version and dimension as one value."""
        return EmbedderStamp(cls.name, cls.version, cls.dimension)

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts.

        Args:
            texts: any number of non-empty texts.

        Returns:
            float32 array of shape (len(texts), dimension); each row has length 1 (or 0 for a text the model has no
            token for). The same text gives the same bytes, whatever it is batched with.
        """


def vectors_of_texts(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Embed texts, and believe the answer only if it is of the shape the embedder promises.

    Raises:
        EmbedderError: it raised, or gave another number or length of vectors.
    """
    try:
        vectors = embedder.embed(texts)
    except Exception as error:
        raise EmbedderError(embedder.name, f"{type(error).__name__}: {error}") from error
    shape = np.shape(vectors)
    if shape != (len(texts), embedder.dimension):
        raise EmbedderError(
            embedder.name, f"gave vectors of shape {shape}; {(len(texts), embedder.dimension)} was promised."
        )
    return vectors
