"""Which extractors there are.

| name | what it is |
|---|---|
| `local` | the default: statements, key phrases and entities, offline and deterministic |
| `none` | chunks only |
| `openai:<model>` | a model of OpenAI, or of any server of its protocol that OPENAI_BASE_URL names |
| `bedrock:<model id>` | a model of Amazon Bedrock |
| `module:Class` | a class of your own |
"""

from resources.extractor.extractor import Extractor
from resources.extractor.llm.options import LlmOptions
from resources.extractor.local_extractor import LocalExtractor
from resources.extractor.none_extractor import NoneExtractor
from resources.own_class import own_class

_KNOWN: dict[str, type[Extractor]] = {"local": LocalExtractor, "none": NoneExtractor}
_MODELS = ("bedrock:", "openai:")


class UnknownExtractorError(ValueError):
    """No extractor has the name."""


def open_extractor(name: str = "local", options: LlmOptions | None = None) -> Extractor:
    """Make the extractor called `name`.

    Args:
        name: see above.
        options: how a language model is used.

    Raises:
        UnknownExtractorError: there is none; the message lists those there are.
    """
    if name.startswith(_MODELS) and not name.endswith(":"):
        from resources.extractor.llm.llm_extractor import LlmExtractor

        return LlmExtractor(name, options)
    if ":" in name and name not in _MODELS:
        try:
            return own_class(name, Extractor)()  # type: ignore[type-abstract]
        except LookupError as error:
            raise UnknownExtractorError(str(error)) from error
    if name not in _KNOWN:
        known = ", ".join([*sorted(_KNOWN), *(f"{prefix}<model>" for prefix in _MODELS), "module:Class"])
        raise UnknownExtractorError(f"Unknown extractor '{name}'. Known: {known}.")
    return _KNOWN[name]()
