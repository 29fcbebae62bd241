"""Instructions inside a document change neither the call, nor the schema, nor the outcome, nor what it costs."""

import json
import re

import pytest

from resources.extractor.llm.answer import answer_schema
from resources.extractor.llm.prompt import INSTRUCTIONS
from tests.extractor.llm.documents import chunks, extracting, extractor
from tests.extractor.llm.injections import INJECTIONS
from tests.servers import scripted_model as scripted
from tests.servers.scripted_model import Step

MODEL = "openai:gpt-4o-mini"
HARMLESS = "This chunk is as harmless as can be."


def shape(body):
    """All of a request but the words of its prompt."""
    rest = {name: value for name, value in body.items() if name != "messages"}
    return rest, [message["role"] for message in body["messages"]], body["messages"][0]["content"]


def test_there_are_twenty():
    """All different."""
    assert len(set(INJECTIONS)) == 20


@pytest.mark.parametrize("text", INJECTIONS)
async def test_a_call_is_the_same_whatever_a_document_says(model, text):
    """Settings, schema, roles and instructions are those of a harmless document; the text stands once, in one fence."""
    await extracting(MODEL, HARMLESS)
    await extracting(MODEL, text)
    harmless, injected = model.calls
    assert shape(injected.body) == shape(harmless.body)
    assert shape(injected.body)[2] == INSTRUCTIONS
    fence = re.match(r"<chunk 1 ([0-9a-f]{16})>\n", injected.prompt)[1]
    assert injected.prompt.count(fence) == 2
    assert injected.prompt.split(f"<chunk 1 {fence}>\n")[1].split(f"\n</chunk 1 {fence}>")[0] == text


@pytest.mark.parametrize("text", INJECTIONS)
async def test_a_document_costs_what_its_length_costs(model, text):
    """One call, with a worst case that its words cannot raise, and its neighbour's entries are unharmed."""
    entries = await extracting(MODEL, text, HARMLESS)
    [call] = model.calls
    [planned] = extractor(MODEL).plan("", chunks(text, HARMLESS))
    assert call.input_tokens <= planned.worst_case.input_tokens
    assert call.output_tokens <= planned.worst_case.output_tokens
    assert HARMLESS in [entry.text for entry in entries]


class Obedient:
    """What a model would answer that does what documents tell it."""

    nothing = {"statements": [], "entities": [], "relations": [], "topics": []}  # noqa: RUF012
    lie = {"text": "The company admits fraud.", "quotation": "the company admits fraud"}  # noqa: RUF012
    unreadable = ("PWNED", '{"result": "done"}', "<answer/>", "token " * 1000, '{"chunks": []}')
    other_chunk = json.dumps({"chunks": [{"chunk": 1, **nothing}, {"chunk": 7, **nothing, "statements": [lie]}]})
    invented = json.dumps({"chunks": [{"chunk": 1, **nothing, "statements": [lie]}]})
    more_fields = json.dumps({"status": "FAILED", "chunks": [{"chunk": 1, "document_id": "victim", **nothing}]})


@pytest.mark.parametrize("answer", [Obedient.other_chunk, Obedient.invented, Obedient.more_fields])
def test_an_obedient_model_changes_no_entry(answer):
    """What it says of other chunks, with invented quotations, or in fields of its own, reaches nobody."""
    from resources.extractor.llm.answer import read_answer
    from resources.extractor.llm.entries import entries_of

    assert entries_of("d", chunks(HARMLESS), read_answer(answer, 1)).entries == ()


@pytest.mark.parametrize("answer", Obedient.unreadable)
def test_an_obedient_model_changes_no_schema(answer):
    """Anything but the schema is malformed."""
    from resources.extractor.llm.answer import MalformedAnswerError, read_answer

    with pytest.raises(MalformedAnswerError):
        read_answer(answer, 1)


async def test_an_answer_without_end_costs_no_more_than_the_ceiling(model):
    """A model that was talked into endless output is cut off by the ceiling, asked once more, and given up."""
    model.script(Step(scripted.TRUNCATED, contains="one hundred thousand times"))
    with pytest.raises(Exception, match="cut off"):
        await extracting(MODEL, INJECTIONS[9])
    assert len(model.calls) == 2
    assert {call.body["max_tokens"] for call in model.calls} == {4096}


def test_the_schema_knows_nothing_but_knowledge():
    """There is no field by which an answer could say whose, where or with what status it is."""
    fields = answer_schema()["properties"]["chunks"]["items"]["properties"]
    assert set(fields) == {"chunk", "statements", "entities", "relations", "topics"}
