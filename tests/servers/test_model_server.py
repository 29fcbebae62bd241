"""The scripted model: what tests rely on."""

import json
import urllib.error
import urllib.request

import pytest

from tests.servers import scripted_model as scripted
from tests.servers.scripted_model import Step

PROMPT = "<chunk 1 0123456789abcdef>\nAda Lovelace wrote. Nobody read.\n</chunk 1 0123456789abcdef>"


def ask(server, prompt=PROMPT):
    """Status and body of one chat completion."""
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
    request = urllib.request.Request(f"{server.url}/v1/chat/completions", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_answers_are_made_of_the_chunks(model):
    """Each sentence is a statement that quotes it; usage is counted."""
    _, reply = ask(model)
    [chunk] = json.loads(reply["choices"][0]["message"]["content"])["chunks"]
    assert [s["quotation"] for s in chunk["statements"]] == ["Ada Lovelace wrote.", "Nobody read."]
    assert chunk["entities"] == ["Ada Lovelace"]
    assert reply["usage"]["prompt_tokens"] == model.calls[0].input_tokens > 0


def test_steps_are_used_up_and_chosen_by_words(model):
    """The first step that fits decides; one that was used as often as it says is passed over."""
    model.script(Step(scripted.THROTTLE, times=1), Step(scripted.TOO_LONG, contains="long"))
    assert [ask(model)[0], ask(model)[0], ask(model, "long")[0]] == [429, 200, 400]
    assert [call.kind for call in model.calls] == ["throttle", "answer", "too_long"]
    assert model.n_paid == 1


def test_a_dropped_reply_was_paid_for(model):
    """The client gets nothing, and the answer was made."""
    model.script(Step(scripted.DROP))
    with pytest.raises(OSError):
        ask(model)
    assert model.n_paid == 1


def test_as_a_process_it_is_the_same(model_process):
    """Another process answers, is scripted and tells its calls."""
    model_process.script(Step(scripted.UNAVAILABLE, times=1))
    assert [ask(model_process)[0], ask(model_process)[0]] == [503, 200]
    assert len(model_process.calls) == 2
    model_process.forget()
    assert model_process.calls == []
