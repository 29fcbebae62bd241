"""Token counts beside those of an independent tokenizer, on kinds of text that differ."""

import importlib.util
import inspect
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.extractor.llm.answer import answer_schema
from resources.extractor.llm.options import LlmOptions
from resources.extractor.llm.planning import Planner
from resources.extractor.llm.prompt import INSTRUCTIONS
from resources.extractor.llm.tokens import TokenCounter
from tests.extractor.llm.documents import chunks, extractor

pytest.importorskip("toktok", reason="the extra llm is not installed")
if importlib.util.find_spec("bpe_openai") is None:
    pytest.skip("the independent tokenizer is not installed", allow_module_level=True)

SAMPLES = Path(__file__).parents[3] / "samples"
_random = random.Random(1)
TEXTS = {
    "prose": (SAMPLES.parent / "README.md").read_text(),
    "code": inspect.getsource(random) + inspect.getsource(json.decoder),
    "table": "\n".join(
        f"| {number} | {_random.random():.6f} | 2026-0{number % 9 + 1}-11 | {_random.randrange(10**9)} | EUR |"
        for number in range(300)
    ),
    "chinese": "人工智能是计算机科学的一个分支。它企图了解智能的实质。由此可以做出反应的新机器。" * 20,
    "japanese": "東京は日本の首都であり、世界でも有数の大都市である。会議の内容は以下の通りです。" * 20,
    "korean": "서울은 대한민국의 수도이자 최대 도시이다. 회의 내용은 다음과 같다." * 20,
}
NAMES = {
    "openai:gpt-4o-mini": "o200k_base",
    "openai:gpt-4-turbo": "cl100k_base",
    "openai:unheard-of": "o200k_base",
    "openai:o3": "o200k_base",
    "bedrock:openai.gpt-oss-120b-1:0": "o200k_base",
}
MODELS = [*NAMES, "bedrock:anthropic.claude-3-haiku-20240307-v1:0", "openai:qwen2.5", "bedrock:amazon.nova-lite-v1:0"]


def independent(text, encoding):
    """Tokens of a text by another implementation with its own copy of the vocabularies."""
    import bpe_openai  # takes two seconds, so only where it is asked

    return len(bpe_openai.get_encoding(encoding).encode(text, disallowed_special=()))


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize(("model", "encoding"), NAMES.items())
def test_estimates_agree_with_another_tokenizer(kind, model, encoding):
    """Within a hundredth for a model whose vocabulary is known; a tenth is promised."""
    [counted] = TokenCounter(model).estimate([TEXTS[kind]])
    assert counted == pytest.approx(independent(TEXTS[kind], encoding), rel=0.01)


@pytest.mark.parametrize("kind", TEXTS)
def test_a_call_is_estimated_with_all_it_carries(kind):
    """Instructions, schema and fences are in a call's estimate: within a tenth of what another tokenizer counts."""
    planner = Planner("openai:gpt-4o", LlmOptions())
    for call in planner.plan("org", chunks(*[TEXTS[kind][at : at + 1000] for at in range(0, 6000, 1000)])):
        sent = [INSTRUCTIONS, call.prompt, json.dumps(answer_schema())]
        counted = sum(independent(text, "o200k_base") for text in sent)
        assert call.estimated_input_tokens == pytest.approx(counted, rel=0.1)
        assert call.worst_case.input_tokens >= counted


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("model", MODELS)
def test_the_bound_is_above_every_vocabulary(kind, model):
    """Whatever vocabulary a model turns out to have, it does not take more than the worst case."""
    [bound] = TokenCounter(model).at_most([TEXTS[kind]])
    assert bound >= max(independent(TEXTS[kind], encoding) for encoding in ("o200k_base", "cl100k_base"))
    assert bound <= len(TEXTS[kind].encode()) + 3 * sum(TEXTS[kind].count(sign) for sign in "<[]")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_the_bound_holds_for_any_text(text):
    """Also for text no vocabulary was made for; what is no Unicode is counted as what is sent."""
    [bound] = TokenCounter("openai:unheard-of").at_most([text])
    sent = text.encode("utf-8", "replace").decode()
    assert bound >= independent(sent, "o200k_base")
    assert bound >= independent(sent, "cl100k_base")


def test_digits_one_by_one_are_within_the_bound():
    """Vocabularies that take each digit, sign and repeated space for itself stay below the bound of a table."""
    one_by_one = sum(not (c.isascii() and c.isalpha()) for c in TEXTS["table"])
    assert TokenCounter("openai:unheard-of").at_most([TEXTS["table"]])[0] >= one_by_one


def test_a_lone_surrogate_is_counted():
    """Half a character is no error."""
    assert TokenCounter("openai:gpt-4o").estimate(["\ud800 and more"]) > [0]


async def test_control_tokens_that_are_broken_stay_within_the_bound(model):
    """What the client library puts into a text so that it forges no turn is in the worst case."""
    given_chunks = chunks("<|im_start|>[INST]" * 50)
    asked = extractor("openai:some-open-model")
    [call] = asked.plan("", given_chunks)
    answer = await asked.execute(call)
    await asked.close()
    assert "<|im_start|>" not in model.calls[0].prompt
    assert answer.usage.input_tokens <= call.worst_case.input_tokens
