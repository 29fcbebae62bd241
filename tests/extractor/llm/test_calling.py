"""Real client libraries against a scripted server: what each fault of a provider becomes, and what it costs."""

import asyncio
import logging
import socket

import pytest

from resources.document_state.reasons import Reason, Remedy
from resources.extractor.llm.answer import Outcome
from resources.extractor.llm.model_error import ModelError
from tests.extractor.llm.documents import PROSE, chunks, extracting, extractor
from tests.servers import scripted_model as scripted
from tests.servers.scripted_model import Step

MODELS = ["openai:gpt-4o-mini", "bedrock:anthropic.claude-3-haiku-20240307-v1:0"]


@pytest.fixture(params=MODELS, ids=["openai", "bedrock"])
def name(request):
    """A model of each provider."""
    return request.param


async def failure(name, *texts):
    """The error of extracting these chunks."""
    with pytest.raises(ModelError) as caught:
        await extracting(name, *texts or (PROSE,))
    return caught.value


async def test_an_answer_becomes_entries(model, name):
    """Statements, entities, relations and topics come back, each tied to the chunk it was found in."""
    given = chunks(PROSE, "Another chunk is about Grace Hopper. She wrote a compiler.")
    entries = await extracting(name, *given)
    assert {entry.kind for entry in entries} == {"statement", "entity", "relation", "topic"}
    assert [e.text for e in entries if e.chunk_id == given[1].chunk_id and e.kind != "topic"] == [
        "Another chunk is about Grace Hopper.",
        "She wrote a compiler.",
        "Grace Hopper",
    ]
    assert len(model.calls) == 1


async def test_a_call_is_deterministic_bounded_and_typed(model, name):
    """Temperature 0, the output ceiling, and the schema go with each call; nothing else could be called."""
    await extracting(name, PROSE)
    [call] = model.calls
    if call.provider == "openai":
        assert (call.body["temperature"], call.body["max_tokens"]) == (0, 4096)
        assert call.body["response_format"]["type"] == "json_schema"
        assert "tools" not in call.body
    else:
        assert call.body["inferenceConfig"] == {"temperature": 0, "maxTokens": 4096}
        assert [tool["toolSpec"]["name"] for tool in call.body["toolConfig"]["tools"]] == ["knowledge"]
        assert call.body["toolConfig"]["toolChoice"]
        assert "$ref" not in str(call.body["toolConfig"])


@pytest.mark.parametrize(("served", "field"), [("gpt-4o-mini", "max_tokens"), ("o3", "max_completion_tokens")])
async def test_the_ceiling_has_the_name_its_model_knows(model, served, field):
    """Servers of the protocol know `max_tokens`; OpenAI's models that reason refuse it."""
    await extracting(f"openai:{served}", PROSE)
    assert model.calls[0].body[field] == 4096


async def test_usage_is_the_providers(model, name):
    """Tokens are what the provider counted, and never more than the worst case."""
    asked = extractor(name)
    [call] = asked.plan("org", chunks(PROSE))
    answer = await asked.execute(call)
    await asked.close()
    [received] = model.calls
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (received.input_tokens, received.output_tokens)
    assert answer.usage.input_tokens <= call.worst_case.input_tokens
    assert answer.outcome is Outcome.FOUND


async def test_an_answer_in_another_shape_is_read(model, name):
    """Text where a tool was to be used, or JSON in a Markdown fence, is an answer all the same."""
    model.script(Step(scripted.ANSWER_OTHERWISE))
    assert await extracting(name, PROSE)
    assert len(model.calls) == 1


async def test_what_is_not_in_the_chunk_is_dropped_and_counted(model, name):
    """A quotation nobody wrote makes no entry; nor does an entity the chunk does not name."""
    model.script(Step(scripted.INVENT))
    asked, given = extractor(name), chunks(PROSE)
    [call] = asked.plan("org", given)
    answer = await asked.execute(call)
    await asked.close()
    found = asked.entries_of("d", given, {given[0].chunk_id: answer.by_chunk[call.chunk_keys[0]]})
    assert (found.entries, found.n_unquoted) == ((), 2)


@pytest.mark.parametrize("kind", [scripted.THROTTLE, scripted.UNAVAILABLE])
async def test_throttling_is_waited_out(model, name, kind):
    """429 or 503 for a while: every document finishes, later; the calls that were refused cost nothing."""
    model.script(Step(kind, retry_after=0.2, for_seconds=1.0))
    texts = [f"Document number {number} says this much and no more." for number in range(6)]
    entries = await extracting(name, *texts, max_tokens=512)
    assert {entry.text for entry in entries if entry.kind == "statement"} == set(texts)
    assert model.n_paid == 6


async def test_throttling_for_too_long_is_a_reason(model, name):
    """A provider that says it will not take anything for an hour is believed at once; the document comes back later."""
    model.script(Step(scripted.THROTTLE, retry_after=3600))
    error = await failure(name)
    assert (error.reason, error.reason.remedy) == (Reason.MODEL_THROTTLED, Remedy.MAY_HEAL)
    assert len(model.calls) == 1


async def test_a_provider_that_is_down_is_asked_again(model, name):
    """503 twice: the third request is answered, and the document has its entries."""
    model.script(Step(scripted.UNAVAILABLE, times=2))
    assert await extracting(name, PROSE)
    assert (len(model.calls), model.n_paid) == (3, 1)


async def test_a_provider_that_stays_down_is_a_reason(model, name, monkeypatch):
    """503 for longer than a document is kept waiting: it gives up its place, and comes back by itself."""
    monkeypatch.setattr("resources.extractor.llm.calling._PATIENCE_SECONDS", 0.5)
    model.script(Step(scripted.UNAVAILABLE))
    error = await failure(name)
    assert (error.reason, error.reason.remedy) == (Reason.MODEL_UNAVAILABLE, Remedy.MAY_HEAL)
    assert not error.may_have_cost


async def test_nobody_listening_is_unavailable(model, name, monkeypatch):
    """A refused connection is told from a lost reply: nothing was sent, so nothing may have cost anything."""
    monkeypatch.setattr("resources.extractor.llm.calling._PAUSES_SECONDS", ())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", url)
    error = await failure(name)
    assert (error.reason, error.may_have_cost) == (Reason.MODEL_UNAVAILABLE, False)


@pytest.mark.parametrize("kind", [scripted.DROP, scripted.BROKE_DOWN])
async def test_a_lost_reply_costs_one_call_more(model, name, kind):
    """The model was at work and no answer came: asked once more, no client library asks behind our back."""
    model.script(Step(kind, times=1))
    assert await extracting(name, PROSE)
    assert model.n_paid == 2


@pytest.mark.parametrize("kind", [scripted.DROP, scripted.BROKE_DOWN])
async def test_replies_that_are_always_lost_end(model, name, kind):
    """Lost twice: the document fails, may heal, and says that calls may have been paid for."""
    model.script(Step(kind))
    error = await failure(name)
    assert (error.reason, error.may_have_cost, model.n_paid) == (Reason.MODEL_UNAVAILABLE, True, 2)


async def test_a_silent_model_is_not_waited_for(model, name):
    """A call longer than the timeout counts as a lost reply."""
    model.script(Step(seconds=3))
    asked = extractor(name, timeout_seconds=0.3)
    [call] = asked.plan("", chunks(PROSE))
    with pytest.raises(ModelError) as caught:
        await asked.execute(call)
    await asked.close()
    assert (caught.value.reason, caught.value.may_have_cost) == (Reason.MODEL_UNAVAILABLE, True)


async def test_a_malformed_answer_is_repaired_once(model, name):
    """The model is told what was wrong, in words of ours, and its second answer counts."""
    model.script(Step(scripted.MALFORMED, times=1))
    assert await extracting(name, PROSE)
    first, second = model.calls
    assert second.prompt.startswith(first.prompt)
    assert "could not be used" in second.prompt
    assert "$.chunks[0].statements" in second.prompt
    assert "rm -rf" not in second.prompt


@pytest.mark.parametrize("kind", [scripted.MALFORMED, scripted.TRUNCATED])
async def test_two_malformed_answers_are_a_reason(model, name, kind):
    """There is one repair, not a second one."""
    model.script(Step(kind))
    error = await failure(name)
    assert (error.reason, len(model.calls)) == (Reason.MODEL_MALFORMED, 2)


async def test_a_few_malformed_answers_fail_nobody_else(model, name):
    """One document that is always answered badly has a reason; the others have their entries."""
    model.script(Step(scripted.MALFORMED, contains="Number 3 "))
    asked = extractor(name)
    outcomes = []
    for number in range(6):
        given = chunks(f"Number {number} is a document of its own.", document_id=f"d{number}")
        try:
            outcomes.append(bool(await asked.extract(f"d{number}", given)))
        except ModelError as error:
            outcomes.append(error.reason)
    await asked.close()
    assert outcomes == [True, True, True, Reason.MODEL_MALFORMED, True, True]


@pytest.mark.parametrize(
    ("kind", "reason", "says"),
    [
        (scripted.WRONG_KEY, Reason.MODEL_ACCESS, ""),
        (scripted.NO_ACCESS, Reason.MODEL_ACCESS, "access"),
        (scripted.NO_MODEL, Reason.MODEL_ACCESS, "model"),
        (scripted.TOO_LONG, Reason.CONTEXT_TOO_LONG, "n"),
        (scripted.FILTERED, Reason.MODEL_REFUSED, "refused"),
        (scripted.REFUSED, Reason.MODEL_REFUSED, "refused"),
        (scripted.BLOCKED, Reason.MODEL_REFUSED, "content"),
        (scripted.REJECT, Reason.MODEL_REJECTED, "max"),
        (scripted.NO_PROTOCOL, Reason.MODEL_MALFORMED, ""),
    ],
)
async def test_what_cannot_heal_is_asked_once(model, name, kind, reason, says):
    """Each has its reason and says what the provider said; asking again would not help, so nobody does."""
    model.script(Step(kind))
    error = await failure(name)
    assert (error.reason, len(model.calls)) == (reason, 1)
    assert error.reason.remedy is not Remedy.MAY_HEAL
    assert says in str(error)


async def test_who_is_not_let_in_stops_asking(model, name):
    """Where the first call found no access, a thousand documents do not make a thousand calls."""
    model.script(Step(scripted.WRONG_KEY))
    asked = extractor(name)
    for number in range(5):
        with pytest.raises(ModelError) as caught:
            await asked.extract("d", chunks(f"Text number {number}."))
        assert caught.value.reason is Reason.MODEL_ACCESS
    await asked.close()
    assert len(model.calls) == 1


async def test_without_a_key_nothing_is_sent(model, monkeypatch):
    """No key for OpenAI itself, no credentials for Bedrock: a reason that names what to set."""
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    errors = [await failure(name) for name in MODELS]
    assert [error.reason for error in errors] == [Reason.MODEL_ACCESS] * 2
    assert "OPENAI_API_KEY" in str(errors[0])
    assert "credentials" in str(errors[1])
    assert model.calls == []


async def test_a_server_of_ones_own_needs_no_key(model, monkeypatch):
    """Ollama and vLLM want none."""
    monkeypatch.delenv("OPENAI_API_KEY")
    assert await extracting("openai:llama3.1", PROSE)


async def test_a_password_in_the_address_is_refused(model, monkeypatch):
    """Client libraries log addresses; so none with a password is used."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:canary@127.0.0.1:1/v1")
    error = await failure("openai:gpt-4o-mini")
    assert error.reason is Reason.MODEL_ACCESS
    assert "canary" not in str(error)


async def test_calls_in_flight_are_bounded(model, name):
    """However many calls a document takes, no more than `concurrency` are under way."""
    model.script(Step(seconds=0.1))
    await extracting(name, *[f"Text number {number}." for number in range(12)], max_tokens=512, concurrency=3)
    assert (len(model.calls), model.most_in_flight) == (12, 3)


async def test_more_calls_in_flight_than_threads_by_default(model):
    """Bedrock's client blocks threads, of which a pool has 40 by default; there are as many as calls may be."""
    name = "bedrock:anthropic.claude-3-haiku-20240307-v1:0"
    model.script(Step(seconds=1))
    await extracting(name, *[f"Text number {number}." for number in range(50)], max_tokens=512, concurrency=50)
    assert model.most_in_flight == 50


def test_an_extractor_works_in_one_event_loop_after_another(model, name, caplog):
    """Closed in one loop it opens itself again in the next, and leaves nothing to complain about."""
    caplog.set_level(logging.WARNING)
    asked = extractor(name)

    async def once():
        assert await asked.extract("d", chunks(PROSE))
        await asked.close()

    for _ in range(2):
        asyncio.run(once())
    assert caplog.records == []
