"""A key is in no log, error or traceback, whatever a provider does with it."""

import logging
import traceback

import pytest

from resources.extractor.llm.model_error import ModelError, cleaned
from tests.extractor.llm.documents import PROSE, extracting
from tests.servers import scripted_model as scripted
from tests.servers.scripted_model import Step

CANARY = "sk-canary-4f0d1c7e9a2b"
MODELS = ["openai:gpt-4o-mini", "bedrock:anthropic.claude-3-haiku-20240307-v1:0"]


@pytest.fixture(autouse=True)
def canaries(model, monkeypatch):
    """A distinctive key for each provider; the scripted server repeats keys in its errors."""
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, CANARY)
    return model


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "kind",
    [
        scripted.ANSWER,
        scripted.WRONG_KEY,
        scripted.NO_ACCESS,
        scripted.NO_MODEL,
        scripted.TOO_LONG,
        scripted.REJECT,
        scripted.FILTERED,
        scripted.MALFORMED,
        scripted.DROP,
        scripted.NO_PROTOCOL,
    ],
)
async def test_a_key_is_nowhere(model, name, kind, caplog):
    """Neither in what is logged, nor in the error, nor in anything it was raised from."""
    caplog.set_level(logging.INFO)
    model.script(Step(kind))
    said = ""
    try:
        await extracting(name, PROSE)
    except ModelError as error:
        said = "".join(traceback.format_exception(error)) + repr(vars(error))
        said += repr((error.__cause__, error.__context__))
    assert (said == "") is (kind == scripted.ANSWER)
    assert CANARY not in said + caplog.text


def test_a_server_that_repeats_a_key_is_cleaned(model):
    """The scripted server does repeat the key it was sent, so that the test above can fail."""
    import json
    import urllib.error
    import urllib.request

    model.script(Step(scripted.WRONG_KEY))
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
    request = urllib.request.Request(f"{model.url}/v1/chat/completions", body, {"Authorization": f"Bearer {CANARY}"})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert CANARY in caught.value.read().decode()


@pytest.mark.parametrize(
    "text",
    [
        f"wrong key: {CANARY}",
        "Authorization: Bearer abc123",
        "http://user:hunter2@host/v1 said no",
        "key sk-abc***********************wxyz is wrong",
        "AKIAIOSFODNN7EXAMPLE is unknown",
    ],
)
def test_what_looks_like_a_key_is_cleaned(text):
    """Known keys by their value, unknown ones by their look; the rest of the words stays."""
    assert "***" in cleaned(text)
    assert not {CANARY, "abc123", "hunter2", "wxyz", "AKIAIOSFODNN7EXAMPLE"} & set(cleaned(text).split())


def test_what_a_person_needs_to_read_stays():
    """Ordinary words of errors are not taken for keys."""
    said = "400 max_tokens: 100000 is over 16384. Unknown keyword_arguments, see api.example.com; a key_is_required."
    assert cleaned(said) == said
