"""Garbage: what nobody refers to goes, and nothing that anybody refers to or is about to."""

from datetime import timedelta

import msgspec

from ingest_assets.upkeep.collecting import Collected, collect, remove_old_jobs
from resources.artifact_store.artifact_key import digest_of
from resources.clock import utc_now
from resources.document_state.job_records import IngestJobs
from resources.document_state.stored_record import decoded
from resources.document_state.take_up import Mode
from resources.document_state.workers import WorkerWatch
from resources.records.record import Write
from tests.artifact_store.contract import artifact


def kept(shop) -> set[str]:
    """All artifacts there are."""
    return {found.key for page in shop.artifacts.pages() for found in page}


async def gc(shop, **options) -> Collected:
    """One collection."""
    return await collect(shop.state, shop.artifacts, shop.backend, lambda _: None, **options)


async def with_garbage(shop) -> str:
    """Two documents, and an older artifact of one that nothing refers to any more; its key."""
    shop.put("a.md", "older text")
    shop.put("b.md", "text")
    await shop.discover()
    await shop.pull()
    old = (await shop.doc("a.md")).artifact
    shop.put("a.md", "newer and longer text")
    await shop.discover()
    await shop.pull()
    return old


async def referred(shop) -> set[str]:
    """What the records refer to."""
    return {doc.artifact async for doc in shop.state.iter_statuses() if doc.artifact}


async def test_removes_what_nobody_refers_to(shop):
    """The older artifact goes, the others stay; a dry run only says so, and a second collection finds nothing."""
    old = await with_garbage(shop)
    assert (await gc(shop, dry_run=True)).n_artifacts == 1
    assert old in kept(shop)
    done = await gc(shop)
    assert (done.n_artifacts, done.n_kept, done.n_bytes > 0) == (1, 2, True)
    assert kept(shop) == await referred(shop)
    assert (await gc(shop)).n_artifacts == 0


async def test_waits_for_who_may_refer_to_it(shop):
    """What a worker put before a collection began, and refers to only after it, is there: the collection waits."""
    old = await with_garbage(shop)
    worker = await shop.worker("stopped")
    await worker.hold([shop.id_of("a.md")])
    [put] = shop.artifacts.put_many([artifact(shop.id_of("a.md"), "what it made")])
    for _ in range(2):
        assert await gc(shop) == Collected(n_workers=1)
    assert {old, put} <= kept(shop)
    doc = await shop.doc("a.md")
    assert (await shop.state.set_many([(msgspec.structs.replace(doc, artifact=put), doc)]))[0] is not None
    await worker.hold([shop.id_of("b.md")])  # at other work by now: it need not end
    assert (await gc(shop)).n_artifacts == 2
    assert put in kept(shop)
    await worker.hold([])
    await worker.end()


async def test_same_content_put_while_it_is_collected(shop):
    """What is put anew after a collection began has another name, so nothing takes it away: not even a late sweep."""
    old = await with_garbage(shop)
    holder = await shop.worker("holder")
    await holder.hold(["other"])
    assert (await gc(shop)).n_workers == 1
    [content] = shop.artifacts.get_many([old]).values()
    [again] = shop.artifacts.put_many([content])
    assert (digest_of(again), again != old) == (digest_of(old), True)
    await holder.hold([])
    await holder.end()
    await gc(shop)
    assert (old in kept(shop), again in kept(shop)) == (False, True)
    shop.artifacts.remove_many([old])  # a sweep that slept
    assert again in kept(shop)


async def test_two_at_once(shop):
    """Two collections go on with one generation, and each may end it."""
    await with_garbage(shop)
    worker = await shop.worker()
    await worker.hold(["x"])
    await gc(shop)
    await gc(shop)
    assert shop.artifacts.begin_generation() == 2
    await worker.hold([])
    await worker.end()
    assert (await gc(shop)).n_artifacts == 1


async def test_worker_whose_record_is_damaged(shop):
    """What it holds nobody knows: nothing is removed before it is gone, or settled as dead."""
    old = await with_garbage(shop)
    worker = await shop.worker()
    await worker.hold(["x"])
    found = await shop.backend.read("worker", worker.worker_id)
    await shop.backend.compare_and_set("worker", [Write(found.key, b"{", found.stamp)])
    assert (await gc(shop)).n_workers == (await gc(shop)).n_workers == 1
    assert old in kept(shop)
    await WorkerWatch(shop.backend, timedelta(0)).bury()
    assert (await gc(shop)).n_workers == 1
    await WorkerWatch(shop.backend).settle(found.key)
    assert (await gc(shop)).n_artifacts == 1


async def test_worker_whose_record_is_damaged_later(shop):
    """It may still hold what it held when the collection began."""
    await with_garbage(shop)
    worker = await shop.worker()
    await worker.hold(["x"])
    assert (await gc(shop)).n_workers == 1
    found = await shop.backend.read("worker", worker.worker_id)
    await shop.backend.compare_and_set("worker", [Write(found.key, b"{", found.stamp)])
    assert (await gc(shop)).n_workers == 1


async def test_damaged_collection_is_begun_anew(shop):
    """A record of a collection that cannot be read is replaced by that of a new one."""
    await with_garbage(shop)
    await shop.backend.compare_and_set("gc", [Write("artifacts", b"{", None)])
    assert (await gc(shop)).n_artifacts == 1


async def test_another_states_artifacts(shop):
    """Where no record refers to anything, many artifacts are another state's: none is removed."""
    shop.artifacts.put_many([artifact(f"d{i}") for i in range(30)])
    assert (await gc(shop)).refused
    assert len(kept(shop)) == 30


async def test_record_that_cannot_be_read(shop):
    """A record nobody can read may refer to anything: nothing is removed, nor counted as if it could be."""
    old = await with_garbage(shop)
    found = await shop.backend.read("document", shop.id_of("b.md"))
    write = Write(found.key, b"{}", found.stamp, label=found.label)
    assert (await shop.backend.compare_and_set("document", [write]))[0].written
    before = kept(shop)
    assert await gc(shop, dry_run=True) == await gc(shop) == Collected(n_damaged=1)
    assert kept(shop) == before
    [mended] = (await shop.state.examine_many([found.key])).values()
    assert await shop.state.replace_faulty([(mended, decoded(found.value))]) == [True]
    await gc(shop)
    assert before - kept(shop) == {old}


async def test_old_jobs(shop):
    """Jobs that ended before a time go; a dry run only counts them; running ones stay."""
    jobs, now = IngestJobs(shop.backend), utc_now()
    made = [
        await jobs.create([["a"]], scope_id="default", user_id="me", mode=Mode.RESUME, now=now, n_unchanged=0, n_busy=0)
        for _ in range(2)
    ]
    await jobs.settle(made[0].job_id, now - timedelta(days=2))
    before = now - timedelta(days=1)
    assert await remove_old_jobs(jobs, before, dry_run=True) == 1
    assert await remove_old_jobs(jobs, before) == 1
    assert await remove_old_jobs(jobs, before) == 0
    assert [job.job_id for job in await jobs.recent(10)] == [made[1].job_id]
