"""Prices: shipped, overridden, or missing before anything is paid."""

import socket
import subprocess
import sys
from decimal import Decimal

import pytest

from resources.extractor.extractor import ExtractorConfigError
from resources.extractor.llm.answer import Usage
from resources.extractor.llm.llm_extractor import LlmExtractor
from resources.extractor.llm.options import LlmOptions, Price
from resources.extractor.llm.prices import PriceList, UnpricedModelError

pytest.importorskip("genai_prices", reason="the extra llm is not installed")

THOUSAND = Usage(1000, 1000)


@pytest.mark.parametrize(
    "model",
    [
        "openai:gpt-4o-mini",
        "bedrock:anthropic.claude-3-haiku-20240307-v1:0",
        "bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "bedrock:amazon.nova-lite-v1:0",
    ],
)
def test_known_models_have_a_price(model, monkeypatch):
    """Without a question to anybody: the prices are shipped."""
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("somebody was asked"))
    assert 0 < PriceList({}).cost(model, THOUSAND) < 1


def test_a_price_is_that_of_its_tokens():
    """Input and output have prices of their own."""
    assert PriceList({}).cost("openai:gpt-4o-mini", Usage(1_000_000, 0)) == Decimal("0.15")
    assert PriceList({}).cost("openai:gpt-4o-mini", Usage(0, 1_000_000)) == Decimal("0.6")


def test_own_prices_come_first():
    """What the configuration says replaces what is shipped, and prices what is not."""
    own = PriceList({model: Price(Decimal("0.5"), Decimal(2)) for model in ("openai:gpt-4o-mini", "openai:mine")})
    assert own.cost("openai:gpt-4o-mini", THOUSAND) == own.cost("openai:mine", THOUSAND) == Decimal("0.0025")


def test_a_free_model_is_priced():
    """A price of 0 is a price."""
    assert PriceList({"openai:mine": Price(Decimal(0), Decimal(0))}).cost("openai:mine", THOUSAND) == 0


def test_an_unknown_price_is_an_error_that_says_what_to_write():
    """Nobody guesses; the message is the section to add."""
    with pytest.raises(UnpricedModelError, match=r'\[prices."openai:mine"\]'):
        PriceList({}).cost("openai:mine", THOUSAND)


def test_an_unknown_price_can_be_allowed():
    """It counts as free then, and only then."""
    assert PriceList({}, allow_unpriced=True).cost("openai:mine", THOUSAND) == 0


def test_the_check_comes_before_the_first_call():
    """An extractor without a price refuses to begin."""
    with pytest.raises(ExtractorConfigError):
        LlmExtractor("openai:mine").check()
    LlmExtractor("openai:mine", LlmOptions(allow_unpriced=True)).check()
    LlmExtractor("openai:gpt-4o-mini").check()


def test_a_missing_key_is_named_before_the_first_call(monkeypatch):
    """OpenAI itself wants a key; a server of one's own may want none, and Bedrock's are boto3's to find."""
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ExtractorConfigError, match="OPENAI_API_KEY is not set"):
        LlmExtractor("openai:gpt-4o-mini").check_access()
    LlmExtractor("bedrock:m").check_access()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")
    LlmExtractor("openai:gpt-4o-mini").check_access()


def test_nothing_heavy_is_loaded_before_it_is_used():
    """Opening an extractor and naming its parts, as every command does, loads no client library."""
    code = (
        "import sys\n"
        "from resources.extractor.open_extractor import open_extractor\n"
        "open_extractor('bedrock:m').parts, open_extractor('openai:m').parts\n"
        "print(sorted({'pydantic_ai', 'openai', 'botocore', 'toktok', 'genai_prices'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_missing_extra_is_named(monkeypatch):
    """Without the packages the message says which command installs them."""
    monkeypatch.setattr("resources.extractor.llm.llm_extractor._PACKAGES", ("no_such_package",))
    with pytest.raises(ExtractorConfigError, match=r"ingest-assets\[llm\]"):
        LlmExtractor("openai:gpt-4o-mini").check()
