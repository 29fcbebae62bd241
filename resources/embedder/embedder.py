"""The port through which chunk texts become vectors."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Embedder(ABC):
    """Turns texts into unit vectors.

    A store records `name`, `version` and `dimension` with its data and refuses vectors of another embedder.
    """

    name: str
    version: str
    dimension: int

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts.

        Args:
            texts: any number of non-empty texts.

        Returns:
            float32 array of shape (len(texts), dimension); each row has length 1 (or 0 for a text the model has no
            token for). The same text gives the same bytes, whatever it is batched with.
        """
