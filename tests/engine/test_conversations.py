"""Conversations: what is said is extracted once, remembered once, and published call by call, wherever a run dies."""

import json
import multiprocessing
import signal

import pytest

from resources.artifact_store.corrections import Signature, corrected
from resources.clock import utc_now
from resources.document_state import transitions
from resources.document_state.model import Status
from resources.document_state.spend_ledger import SpendLedger
from resources.document_state.workers import WorkerWatch
from resources.extractor.llm.options import LlmOptions
from tests.engine.paid_workshop import DEATHS, PaidWorkshop, run_and_die, transcript, turns
from tests.servers import scripted_model as scripted
from tests.servers.clients import patient, s3_client
from tests.servers.sampling import sampled
from tests.servers.scripted_model import Step, chunks_in

KEY = "talk.json"
TEA = "We like tea."


@pytest.fixture
async def paid(tmp_path, pool, model):
    """A workshop that pays the scripted model, on SQLite."""
    opened = PaidWorkshop(tmp_path, "sqlite:///state.db", "sqlite:///artifacts.db", pool)
    yield opened
    await opened.close()


async def fed(shop, n):
    """Let the conversation have so many turns, and do what is due."""
    shop.put(KEY, transcript(n))
    await shop.discover()
    return await shop.pull()


def facts(n):
    """The memories of so many turns."""
    return {TEA, *(f"Bob: Fact number {turn} is new." for turn in range(0, n, 2))} | {
        f"Ann: Fact number {turn} is new." for turn in range(1, n, 2)
    }


async def test_portions_cost_one_call_each(paid, model):
    """600 turns in 20 portions: a call and the pointer after each; the portions again, or nothing new: no call."""
    paid.llm.options = LlmOptions(max_tokens=16384)
    for portion in range(1, 21):
        await fed(paid, 30 * portion)
        assert (len(model.calls), (await paid.doc(KEY)).last_extracted_turn) == (portion, 30 * portion - 1)
    assert set(await paid.memories(KEY)) == facts(600)
    before = await paid.doc(KEY)
    for portion in range(1, 21):
        await fed(paid, 30 * portion)
    await paid.work_on(KEY, named=True)
    after = await paid.doc(KEY)
    assert (after.artifact, after.last_extracted_turn, after.spent_micro_usd) == (
        before.artifact, before.last_extracted_turn, before.spent_micro_usd,
    )  # fmt: skip
    assert paid.held() == {paid.id_of(KEY): 600}
    assert len(model.calls) == 20


async def test_at_once_a_call_for_each_budget(paid, model):
    """Fed at once, a conversation takes as many calls as its turns are budgets, and remembers the same."""
    await fed(paid, 24)
    assert len(model.calls) == len(paid.llm.plan("", _chunks(await artifact(paid))))
    assert 1 < len(model.calls) < 24
    assert sum(len(chunks_in(call.prompt)) for call in model.calls) == 24
    assert set(await paid.memories(KEY)) == facts(24)


async def artifact(shop):
    """What extraction made of the conversation."""
    [found] = shop.artifacts.get_many([(await shop.doc(KEY)).artifact]).values()
    return found


def _chunks(found):
    return [chunk for chunk in found.chunks if chunk.place.turn is not None]


async def test_a_new_turn_writes_only_what_is_new(paid, model):
    """The store embeds and writes the new turn's row alone; the others stay as they were written."""
    await fed(paid, 8)
    store, written = paid.stores["s"], []
    original = store.write
    store.write = lambda builds: written.extend(builds) or original(builds)
    await fed(paid, 9)
    [build] = written
    assert len(build.vectors) == 1
    assert [chunks_in(call.prompt) for call in model.calls][-1] == ["Bob: Fact number 8 is new. We like tea."]
    assert paid.held()[paid.id_of(KEY)] == 9


async def test_the_pointer_moves_call_by_call(paid, model):
    """Each call but the last is published while the document is claimed, before the next call is made."""
    seen = []
    execute = paid.llm.execute

    async def watched(call):
        doc = await paid.doc(KEY)
        seen.append((doc.extraction.status, doc.last_extracted_turn, doc.claim is not None))
        return await execute(call)

    paid.llm.execute = watched
    await fed(paid, 24)
    pointers = [pointer for _, pointer, _ in seen]
    assert pointers[0] is None
    assert pointers[1:] == sorted(set(pointers[1:]))
    assert {(status, claimed) for status, _, claimed in seen} == {(Status.IN_PROGRESS, True)}
    assert (await paid.doc(KEY)).extraction.status is Status.COMPLETED


async def test_an_edited_turn_is_extracted_again_from_there(paid, model):
    """What was said before it stays; what it said is forgotten; what follows it the journal has."""
    await fed(paid, 12)
    kept = await paid.memories(KEY)
    said = turns(12)
    said[6]["content"] = "Fact number six was wrong. We like tea."
    paid.put(KEY, json.dumps({"turns": said}))
    await paid.discover()
    model.forget()
    await paid.pull()
    now = await paid.memories(KEY)
    assert set(now) == facts(12) - {"Bob: Fact number 6 is new."} | {"Bob: Fact number six was wrong."}
    assert all(now[text] == chunk for text, chunk in kept.items() if text in now)
    assert [chunks_in(call.prompt) for call in model.calls] == [["Bob: Fact number six was wrong. We like tea."]]


async def test_turns_that_are_gone_take_their_memories_along(paid, model):
    """A conversation that ends earlier remembers what is left of it, and that costs nothing."""
    await fed(paid, 12)
    model.forget()
    await fed(paid, 5)
    assert set(await paid.memories(KEY)) == facts(5)
    assert ((await paid.doc(KEY)).last_extracted_turn, len(model.calls)) == (4, 0)


async def test_another_model_spends_nothing_on_old_turns(paid, model, tmp_path, pool):
    """After a change of model only new turns are asked about; the rest stays stale by configuration until asked for."""
    await fed(paid, 4)
    other = PaidWorkshop(tmp_path, "sqlite:///state.db", "sqlite:///artifacts.db", pool, "openai:gpt-4o")
    model.forget()
    await fed(other, 6)
    assert sum(len(chunks_in(call.prompt)) for call in model.calls) == 2
    assert (await other.doc(KEY)).extraction.parts["model"] == "openai:gpt-4o-mini"
    model.forget()
    await other.work_on(KEY, renew_extraction=True, named=True)
    assert sum(len(chunks_in(call.prompt)) for call in model.calls) == 4
    assert (await other.doc(KEY)).extraction.parts["model"] == "openai:gpt-4o"
    assert set(await other.memories(KEY)) == facts(6)
    await other.close()


async def test_what_was_asked_for_is_not_forgotten_by_a_death(paid, model, tmp_path, pool):
    """A rebuild on request that dies before its first call begins at the first turn in the next run, too."""
    await fed(paid, 4)
    other = PaidWorkshop(tmp_path, "sqlite:///state.db", "sqlite:///artifacts.db", pool, "openai:gpt-4o")
    model.script(Step(scripted.WRONG_KEY, times=1))
    await other.work_on(KEY, renew_extraction=True, named=True)
    assert (await other.doc(KEY)).extraction.status is Status.FAILED
    model.script()
    again = PaidWorkshop(tmp_path, "sqlite:///state.db", "sqlite:///artifacts.db", pool, "openai:gpt-4o")
    await again.work_on(KEY)
    assert (await again.doc(KEY)).extraction.parts["model"] == "openai:gpt-4o"
    await other.close()
    await again.close()


async def test_a_call_that_fails_keeps_what_was_before_it(paid, model):
    """The document carries the reason, the pointer what was extracted; trying again asks for the rest only."""
    model.script(Step(scripted.REFUSED, contains="Fact number 20 "))
    await fed(paid, 24)
    doc = await paid.doc(KEY)
    assert doc.extraction.status is Status.FAILED
    assert 0 < doc.last_extracted_turn < 20
    model.script()
    model.forget()
    [stored] = await paid.state.set_many([(transitions.retry_requested(doc, utc_now()), doc)])
    assert stored is not None
    await paid.pull()
    assert all("Fact number 0 " not in call.prompt for call in model.calls)
    assert set(await paid.memories(KEY)) == facts(24)


async def test_a_correction_stays_with_its_turn(paid, model):
    """Corrected and then continued, a conversation keeps the correction, and its memories their ids."""
    await fed(paid, 4)
    before = await artifact(paid)
    made = corrected(before, {before.chunks[1].chunk_id: "Ann: It was coffee."}, Signature("me", utc_now()))
    assert [entry.entry_id for entry in made.entries] == [entry.entry_id for entry in before.entries]


async def sweep(shop):
    """What a sweep does for workers that died: their documents are free, their reservations settled."""
    watch = WorkerWatch(shop.backend)
    for record in await watch.all():
        docs = (await shop.state.get_many(record.claimed)).values()
        for doc in docs:
            if doc.claim is not None:
                await shop.state.set_many([(transitions.released(doc, utc_now()), doc)])

    async def nobody():
        return []

    await shop.gate.sweep(nobody, utc_now())


async def check_death(shop, model, at, state, artifacts):
    """Die there in a run, run again: nothing twice, nothing missing, at most the call in flight paid again."""
    shop.put(KEY, transcript(24))
    await shop.discover()
    process = multiprocessing.get_context("spawn").Process(
        target=run_and_die, args=(shop.folder, state, artifacts, at, model.environment())
    )
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL, at
    await sweep(shop)
    await shop.pull()
    doc = await shop.doc(KEY)
    assert (doc.extraction.status, doc.build.status, doc.last_extracted_turn) == (
        Status.COMPLETED, Status.COMPLETED, 23,
    )  # fmt: skip
    assert set(await shop.memories(KEY)) == facts(24)
    assert shop.held() == {shop.id_of(KEY): 24}
    n_needed = len(shop.llm.plan("", _chunks(await artifact(shop))))
    in_flight = at in [("execute", "after", 2), ("record", "before", 2)]
    asked = [chunk for call in model.calls for chunk in chunks_in(call.prompt)]
    assert len(model.calls) <= n_needed + in_flight
    assert (len(asked) > len(set(asked))) is in_flight
    report = await SpendLedger(shop.backend).report()
    spent = sum(totals.micro_usd for models in report.days.values() for totals in models.values())
    assert report.open == []
    assert spent >= sum(0.15 * call.input_tokens + 0.6 * call.output_tokens for call in model.calls)


@pytest.mark.parametrize("at", DEATHS, ids=lambda at: "-".join(map(str, at)))
async def test_a_death_costs_at_most_the_call_in_flight(paid, model, at):
    """Wherever a run dies between two writes, on SQLite."""
    await check_death(paid, model, at, "sqlite:///state.db", "sqlite:///artifacts.db")


@pytest.fixture
def s3_uri(seaweedfs, bucket_name):
    """Where state or artifacts may be, in a new bucket of a real server."""
    s3_client(seaweedfs.url).create_bucket(Bucket=bucket_name)
    return lambda prefix: patient(f"s3://{bucket_name}/{prefix}?endpoint_url={seaweedfs.url}")


@pytest.mark.servers
@pytest.mark.parametrize(
    ("kind", "at"),
    sampled(["s3", "dynamodb"], DEATHS, one_in=4),
    ids=lambda it: it if isinstance(it, str) else "-".join(map(str, it)),
)
async def test_a_death_costs_at_most_the_call_in_flight_on_servers(request, tmp_path, pool, model, s3_uri, kind, at):
    """Wherever a run dies between two writes, with the state on S3 or in DynamoDB and the artifacts on S3."""
    if kind == "s3":
        state = s3_uri("state")
    else:
        table, url = request.getfixturevalue("table_prefix"), request.getfixturevalue("dynamodb_local")
        state = patient(f"dynamodb://{table}state?endpoint_url={url}")
    shop = PaidWorkshop(tmp_path, state, s3_uri("artifacts"), pool)
    await shop.backend.create()
    await check_death(shop, model, at, state, s3_uri("artifacts"))
    await shop.close()


async def test_a_document_in_other_hands_is_not_paid_on(paid, model):
    """A run whose document was taken from it makes no further call for it."""
    record = paid.llm.execute

    async def taken(call):
        answer = await record(call)
        doc = await paid.doc(KEY)
        if doc.claim is not None and doc.last_run_id == "run":
            await paid.state.set_many([(transitions.released(doc, utc_now()), doc)])
        return answer

    paid.llm.execute = taken
    await fed(paid, 24)
    assert len(model.calls) == 1
    doc = await paid.doc(KEY)
    assert (doc.extraction.status, doc.claim) == (Status.PENDING, None)
