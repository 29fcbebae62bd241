"""Correcting a document's chunks: one write of its record, whatever dies or races in between."""

import asyncio
import signal
from datetime import UTC, datetime

import msgspec
import pytest

from ingest_assets.upkeep.correcting import (
    DocumentBusyError,
    NotCorrectableError,
    edit_chunks,
    read_chunks,
    reset_chunks,
)
from ingest_assets.upkeep.edits import Edit, EditError
from ingest_assets.upkeep.staleness import standings
from resources.artifact_store.corrections import ChunkChangedError, Signature, UnknownChunkError, corrections_of
from resources.clock import to_the_second, utc_now
from resources.document_state import transitions
from resources.document_state.model import LinkState, Status
from resources.document_state.workers import Worker, WorkerWatch
from tests.document_state.documents import claimed, content_changed, vanished
from tests.records.processes_contract import SPAWN, run_together
from tests.upkeep.corrected_documents import (
    DID,
    components_of,
    correct_and_die,
    correct_together,
    edits_of,
    published,
)

ANN = Signature("ann", datetime(2026, 1, 1, tzinfo=UTC), "typo")
BOB = Signature("bob", datetime(2026, 1, 2, tzinfo=UTC))


@pytest.fixture
async def components(tmp_path):
    """A project with one document of three chunks, which stands in two stores."""
    opened = components_of(tmp_path)
    await published(opened, ["one", "two", "three"], stores=("default", "archive"))
    yield opened
    await opened.backend.close()


async def texts(components):
    """What the chunks of the document say."""
    return [chunk.text for chunk in (await read_chunks(components, "a"))[1].chunks]


async def edit(components, signature=ANN, **new):
    """Correct chunks, named by the texts they have."""
    _, artifact = await read_chunks(components, "a")
    return await edit_chunks(components, "a", edits_of(artifact, **new), signature, patience=0.3)


async def test_a_correction_is_published(components):
    """Text, record and links change at once: stale in every store, complete, free, and nobody is a worker any more."""
    done = await edit(components, two="zwei")
    assert done.n_changed == 1
    assert await texts(components) == ["one", "zwei", "three"]
    doc, artifact = await read_chunks(components, "a")
    assert doc == done.doc
    assert {link.state for link in doc.links.values()} == {LinkState.STALE}
    assert (doc.build.status, doc.claim, doc.chunkset_hash) == (Status.COMPLETED, None, artifact.chunkset_hash)
    assert (doc.corrections.n, doc.corrections.by) == (1, "ann")
    assert artifact.chunks[1].correction.at == ANN.at
    assert await WorkerWatch(components.backend).all() == []
    [_, store] = standings(doc, await components.configured(), ["default"])
    assert store.why == f"chunks corrected by ann at {to_the_second(doc.corrections.at)} UTC"
    assert store.what_to_do == "`ingest run --store default --stale`"


async def test_reset_makes_links_current_again(components):
    """With the last correction the staleness goes where the store still holds the original and is configured."""
    before, _ = await read_chunks(components, "a")
    await edit(components, two="zwei", three="drei")
    _, artifact = await read_chunks(components, "a")
    await reset_chunks(components, "a", [artifact.chunks[1].chunk_id], "bob")
    assert await texts(components) == ["one", "two", "drei"]
    done = await reset_chunks(components, "a", [], "bob")
    assert done.doc.links["default"] == before.links["default"]
    assert (done.doc.artifact, done.doc.artifact_hash) == (before.artifact, before.artifact_hash)
    assert (done.doc.corrections.n, done.doc.corrections.by) == (0, "bob")


async def test_nothing_to_do_writes_nothing(components):
    """Lines as they were shown, a reset of nothing, and the same edit once more leave the record as it is."""
    doc, artifact = await read_chunks(components, "a")
    assert (await edit(components, one="one")).n_changed == 0
    assert (await reset_chunks(components, "a", [], "ann")).n_changed == 0
    assert (await read_chunks(components, "a"))[0] == doc
    edits = edits_of(artifact, two="zwei")
    corrected = (await edit_chunks(components, "a", edits, ANN)).doc
    assert (await edit_chunks(components, "a", edits, ANN)).n_changed == 0
    assert (await read_chunks(components, "a"))[0] == corrected


async def test_the_same_chunk_is_not_overwritten(components):
    """Who corrects what somebody else has corrected since it was shown is told by whom, and nothing is written."""
    _, shown = await read_chunks(components, "a")
    await edit(components, two="zwei")
    before, _ = await read_chunks(components, "a")
    with pytest.raises(ChunkChangedError, match=f"was changed by ann at {to_the_second(ANN.at)} UTC"):
        await edit_chunks(components, "a", edits_of(shown, two="deux", one="un"), BOB)
    assert (await read_chunks(components, "a"))[0] == before
    assert await texts(components) == ["one", "zwei", "three"]


async def test_a_whole_file_that_is_older(components):
    """Lines nobody touched do not matter, also of chunks that others have corrected since."""
    _, shown = await read_chunks(components, "a")
    whole = [Edit(i, c.chunk_id, "drei" if c.text == "three" else c.text) for i, c in enumerate(shown.chunks, 1)]
    await edit(components, two="zwei")
    await edit(components, zwei="deux")
    await edit_chunks(components, "a", whole, BOB)
    assert await texts(components) == ["one", "deux", "drei"]


async def test_reset_of_what_was_corrected_again(components):
    """A correction that somebody has corrected since it was shown is not taken back."""
    await edit(components, two="zwei")
    _, shown = await read_chunks(components, "a")
    await edit(components, BOB, zwei="deux")
    with pytest.raises(UnknownChunkError):
        await reset_chunks(components, "a", [shown.chunks[1].chunk_id], "ann")
    assert await texts(components) == ["one", "deux", "three"]


def run_in_processes(tmp_path, edits):
    """Correct the document in a process for each list of edits, all at once."""
    uri = f"sqlite:///{tmp_path / '.ingest' / 'state.db'}"
    run_together(correct_together, len(edits), uri, str(tmp_path), edits, seconds=120)


async def ends(components):
    """How it ended for each process."""
    return [record.value.decode() async for record in components.backend.list_records(DID)]


async def test_processes_at_one_chunk(components, tmp_path):
    """Of processes that correct the same chunk at the same moment one succeeds, and the others are told by whom."""
    _, shown = await read_chunks(components, "a")
    run_in_processes(tmp_path, [edits_of(shown, two=f"by person {i}") for i in range(4)])
    found = await ends(components)
    assert found.count("done") == 1
    winner = (await texts(components))[1].removeprefix("by ")
    assert all(f"was changed by {winner} at" in told for told in found if told != "done")


async def test_processes_at_chunks_of_their_own(components, tmp_path):
    """Processes that correct different chunks of one document at the same moment all succeed, and no text is lost."""
    _, shown = await read_chunks(components, "a")
    run_in_processes(tmp_path, [edits_of(shown, **{text: f"new {text}"}) for text in ("one", "two", "three")])
    assert await ends(components) == ["done"] * 3
    assert await texts(components) == ["new one", "new two", "new three"]
    doc, artifact = await read_chunks(components, "a")
    assert doc.corrections.n == len(corrections_of(artifact)) == 3
    assert await WorkerWatch(components.backend).all() == []


async def test_killed_between_artifact_and_record(components, tmp_path):
    """Nothing of the correction shows; its worker's record names the document, and once it is free it can be redone."""
    before, shown = await read_chunks(components, "a")
    edits = edits_of(shown, two="zwei")
    process = SPAWN.Process(target=correct_and_die, args=(str(tmp_path), "a", edits))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    doc, artifact = await read_chunks(components, "a")
    assert (artifact, doc.links, doc.artifact) == (shown, before.links, before.artifact)
    [dead] = await WorkerWatch(components.backend).bury()
    assert (dead.claimed, dead.worker_id) == (("a",), doc.claim.worker_id)
    with pytest.raises(DocumentBusyError, match="`ingest run --mode resume`"):
        await edit_chunks(components, "a", edits, ANN, patience=0.2)
    await components.state.set_many([(transitions.released(doc, utc_now()), doc)])
    await edit_chunks(components, "a", edits, ANN)
    assert await texts(components) == ["one", "zwei", "three"]


async def test_a_run_is_waited_for(components):
    """A document in a worker's hands is corrected when that has let go; while it has it, nothing is written."""
    doc, _ = await read_chunks(components, "a")
    worker = await Worker.register(components.backend, "some run", utc_now())
    [held] = await components.state.set_many([(claimed(doc, extract=False, worker=worker.worker_id), doc)])
    with pytest.raises(DocumentBusyError, match="run of "):
        await edit(components, two="zwei")
    assert (await components.state.get_status("a")) == held
    correcting = asyncio.create_task(edit(components, two="zwei"))
    await components.state.set_many([(transitions.released(held, utc_now()), held)])
    assert (await correcting).n_changed == 1


class Meddling:
    """An artifact store during whose work something else happens to the document."""

    def __init__(self, components, meanwhile):
        self._artifacts, self._state, self._meanwhile = components.artifacts, components.state, meanwhile

    def get_many(self, keys):
        """See ArtifactStore."""
        return self._artifacts.get_many(keys)

    def put_many(self, artifacts):
        """See ArtifactStore."""
        keys = self._artifacts.put_many(artifacts)
        asyncio.run(self._meddle())
        return keys

    async def _meddle(self):
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            doc = await self._state.get_status("a")
            assert await self._state.set_status("a", meanwhile(doc), expected=doc)


async def test_declared_dead_meanwhile(components):
    """Under a claim that was taken away before the record was written nothing is published; it is done again."""
    components.artifacts = Meddling(components, lambda doc: transitions.released(doc, utc_now()))
    assert (await edit(components, two="zwei")).n_changed == 1
    assert await texts(components) == ["one", "zwei", "three"]
    assert await WorkerWatch(components.backend).all() == []


async def test_content_changes_meanwhile(components):
    """New content that discovery finds just then wins: the correction is refused, and the record is discovery's."""
    components.artifacts = Meddling(components, content_changed)
    with pytest.raises(NotCorrectableError, match="other content by now"):
        await edit(components, two="zwei")
    doc, _ = await read_chunks(components, "a")
    assert (doc.extraction.status, doc.claim, doc.corrections) == (Status.PENDING, None, None)


async def test_an_artifact_store_that_fails(components):
    """If the artifact cannot be kept, the document is free again and as it was."""

    def fail(_):
        raise OSError("disk full")

    before, _ = await read_chunks(components, "a")
    components.artifacts = Meddling(components, fail)
    with pytest.raises(OSError, match="disk full"):
        await edit(components, two="zwei")
    doc, _ = await read_chunks(components, "a")
    assert (doc.claim, doc.links, doc.artifact) == (None, before.links, before.artifact)
    assert await WorkerWatch(components.backend).all() == []


@pytest.mark.parametrize("change", [vanished, content_changed])
async def test_what_cannot_be_corrected(components, change):
    """A document that is gone, or whose new content is not read yet, is refused and left alone."""
    doc, shown = await read_chunks(components, "a")
    await components.state.set_many([(change(doc), doc)])
    with pytest.raises(NotCorrectableError):
        await edit_chunks(components, "a", edits_of(shown, two="zwei"), ANN)


async def test_lost_chunks(components):
    """Chunks that are gone from the artifact store, or were never there, are told of."""
    doc, _ = await read_chunks(components, "a")
    await components.state.set_many([(msgspec.structs.replace(doc, artifact="gone"), doc)])
    with pytest.raises(NotCorrectableError, match="lost or damaged"):
        await read_chunks(components, "a")
    with pytest.raises(NotCorrectableError, match="has no chunks"):
        await read_chunks(components, "never seen")


async def test_one_wrong_line_and_nothing_is_written(components):
    """A file is taken as a whole or not at all."""
    before, shown = await read_chunks(components, "a")
    with pytest.raises(EditError, match="Line 9"):
        await edit_chunks(components, "a", [*edits_of(shown, two="zwei"), Edit(9, "nonsense", "x")], ANN)
    assert (await read_chunks(components, "a"))[0] == before
