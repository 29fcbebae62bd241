"""The read model finds what the state holds, and says how old it is."""

import asyncio
import concurrent.futures
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from ingest_assets.api.read_model.document_index import DocumentIndex, IndexUnavailableError
from ingest_assets.api.read_model.queries import TRIGGERS
from ingest_assets.api.read_model.replica import NotBuiltError, Replica
from ingest_assets.api.read_model.state_file import open_in_state_file
from resources.document_source.document_ids import source_uri
from resources.document_state import removals, transitions
from resources.document_state.document_state_store import KIND, RecordDocumentStateStore
from resources.document_state.label import DocumentLabel, label_of, read_label
from resources.document_state.link_counts import last_pushes
from resources.document_state.model import Claim, DocStatus, DocumentStoreLink, LinkState, Presence, Status
from resources.records.backend import RecordBackend
from resources.records.memory_backend import MemoryBackend
from resources.records.record import Write
from resources.records.sqlite_backend import SqliteBackend
from resources.sqlite_file import SqliteFile
from tests.document_state.documents import NOW, built, claimed, extracted, ingested

NAMES = ("a.md", "Über uns.pdf", "100%_sure.txt", "sub/deep/B.md", "plain.txt")


def _found(name: str, org_id: str = "ours", number: int = 0) -> DocStatus:
    uri = source_uri("docs", name.encode())
    return transitions.discovered(f"{number:03d}-{org_id}", org_id, "docs", uri, "v", 1, ("s",), NOW)


class Followed:
    """A state with a read model of it, brought up to now before it is asked."""

    def __init__(self, backend: RecordBackend, index: DocumentIndex) -> None:
        self.backend = backend
        self.state = RecordDocumentStateStore(backend)
        self.index = index

    async def up_to_now(self) -> DocumentIndex:
        """The read model, with all that the state holds now."""
        if isinstance(self.index, Replica):
            await self.index.refresh()
        return self.index


@pytest.fixture(params=["state file", "replica"])
async def followed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Followed]:
    """Each kind of read model."""
    if request.param == "replica":
        backend = MemoryBackend()
        replica = Replica(backend, 1, 1)
        await replica.reconcile()
        yield Followed(backend, replica)
        replica.close()
    else:
        files = SqliteBackend(tmp_path / "state.db")
        await files.create()
        index = open_in_state_file(files.path)
        yield Followed(files, index)
        index.close()
        await files.close()


async def test_it_follows_every_change(followed: Followed) -> None:
    """After any changes, pages and counts are those of the records, for each organisation."""
    rng = random.Random(7)
    state = followed.state
    docs = [_found(f"{number}.md", rng.choice(["ours", "theirs"]), number) for number in range(60)]
    current = [doc for doc in await state.set_many([(doc, None) for doc in docs]) if doc]
    for _ in range(5):
        await followed.up_to_now()
        for at in rng.sample(range(60), 20):
            [written] = await state.set_many([(_changed(current[at]), current[at])])
            assert written is not None
            current[at] = written
        index = await followed.up_to_now()
        for org_id in ("ours", "theirs"):
            mine = {doc.document_id: doc for doc in current if doc.org_id == org_id}
            assert index.page(org_id, lambda _: True, "", "", 100) == sorted(mine)
            done = [key for key, doc in mine.items() if doc.extraction.status is Status.COMPLETED]
            assert index.page(org_id, lambda label: label.extraction is Status.COMPLETED, "", "", 100) == sorted(done)
            assert sum(index.counts(org_id, lambda label: label.extraction is Status.COMPLETED).values()) == len(done)


async def test_what_changes_while_it_is_asked_is_in_the_answer(tmp_path: Path) -> None:
    """A document that takes on a label that nobody had, between the look at the labels and the answer, is not lost."""
    backend = SqliteBackend(tmp_path / "state.db")
    await backend.create()
    state, index = RecordDocumentStateStore(backend), open_in_state_file(backend.path)
    [doc] = await state.set_many([(_found("a.md"), None)])
    assert doc is not None
    changed = _changed(doc)

    def meanwhile(label: DocumentLabel) -> bool:
        with concurrent.futures.ThreadPoolExecutor() as another:
            assert another.submit(asyncio.run, state.set_many([(changed, doc)])).result() != [None]
        return True

    assert index.page("ours", meanwhile, "", "", 10) == [doc.document_id]
    assert index.page("ours", lambda label: label.extraction is changed.extraction.status, "", "", 10) == [
        doc.document_id
    ]
    index.close()
    await backend.close()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", set(NAMES)),
        ("md", {"a.md", "sub/deep/B.md"}),
        ("B.MD", {"sub/deep/B.md"}),
        ("deep/b", {"sub/deep/B.md"}),
        ("über", {"Über uns.pdf"}),
        ("ÜBER UNS", {"Über uns.pdf"}),
        ("%", {"100%_sure.txt"}),
        ("%_s", {"100%_sure.txt"}),
        ("_", {"100%_sure.txt"}),
        ("' OR 1=1 --", set()),
        ("\ud800", set()),
    ],
)
async def test_names_are_searched_as_text(followed: Followed, text: str, names: set[str]) -> None:
    """A piece of a name finds it whatever the case, and no character in it is a pattern or a statement."""
    docs = [_found(name, number=number) for number, name in enumerate(NAMES)]
    await followed.state.set_many([(doc, None) for doc in docs])
    index = await followed.up_to_now()
    found = index.page("ours", lambda _: True, text, "", 100)
    assert {NAMES[int(key[:3])] for key in found} == names


async def test_a_replica_says_how_old_it_is() -> None:
    """Before it has seen all there is, a replica has no answer; what it cannot see by what is open, it reconciles."""
    backend = MemoryBackend()
    state = RecordDocumentStateStore(backend)
    await state.set_many([(_ingested(_found("a.md")), None)])
    replica = Replica(backend, 1, 1)
    with pytest.raises(NotBuiltError):
        replica.as_of()
    await replica.refresh()
    with pytest.raises(NotBuiltError):
        replica.as_of()
    await replica.reconcile()
    first = replica.as_of()
    assert replica.page("ours", lambda _: True, "", "", 9) == ["000-ours"]
    found = await backend.read(KIND, "000-ours")
    assert found is not None
    await backend.compare_and_set(KIND, [Write("000-ours", None, found.stamp)])
    await replica.reconcile()
    assert replica.page("ours", lambda _: True, "", "", 9) == []
    assert replica.as_of() > first
    replica.close()


@pytest.mark.parametrize("lost", sorted(TRIGGERS))
async def test_a_state_file_that_lost_a_trigger_is_indexed_anew(tmp_path: Path, lost: str) -> None:
    """Whatever took a trigger away, the next server notices, and finds what was written in between."""
    backend = SqliteBackend(tmp_path / "state.db")
    await backend.create()
    open_in_state_file(backend.path).close()
    with SqliteFile(backend.path, [()] * 2, "NORMAL").transaction() as connection:
        connection.execute(f"DROP TRIGGER {lost}")
    await RecordDocumentStateStore(backend).set_many([(_found("a.md"), None)])
    index = open_in_state_file(backend.path)
    assert index.page("ours", lambda _: True, "", "", 9) == ["000-ours"]
    index.close()
    await backend.close()


async def test_a_state_file_that_was_replaced_is_indexed_too(tmp_path: Path) -> None:
    """A file put in its place has other documents and numbers of labels, and no index yet; without one it says so."""
    backend, other = SqliteBackend(tmp_path / "state.db"), SqliteBackend(tmp_path / "other.db")
    await RecordDocumentStateStore(backend).set_many([(_found("a.md"), None)])
    index = open_in_state_file(backend.path)
    assert index.page("ours", lambda _: True, "", "", 9) == ["000-ours"]
    renamed = msgspec.structs.replace(_found("b.md", number=1), source="another")
    await RecordDocumentStateStore(other).set_many([(renamed, None)])
    await other.close()
    for file in tmp_path.glob("state.db*"):
        file.unlink()
    with pytest.raises(IndexUnavailableError, match="removed"):
        index.counts("ours", lambda _: True)
    other.path.rename(backend.path)
    assert index.page("ours", lambda _: True, "", "", 9) == ["001-ours"]
    assert index.counts("ours", lambda _: True) == {read_label(label_of(renamed)): 1}
    index.close()
    await backend.close()


_DAMAGED = [
    b"\xff no JSON",
    b"",
    b"{}",
    b"[1]",
    b'{"org_id": 1, "source_uri": "docs:a"}',
    b'{"org_id": "ours", "source_uri": 7}',
    b'{"org_id": 1, "source_uri": "docs:a", "links": {"s": {"last_push_at": "2026-01-01T00:00:00Z"}}}',
]


@pytest.mark.parametrize("value", _DAMAGED)
async def test_a_damaged_record_stops_nothing(followed: Followed, value: bytes) -> None:
    """It is left out of lists and may be written all the same, as those beside it; once it is mended it is listed."""
    first, second = _found("a.md", number=1), _found("b.md", number=2)
    damaged = Write(first.document_id, value, None, label=label_of(first), open=True)
    [result] = await followed.backend.compare_and_set(KIND, [damaged])
    assert result.written
    await followed.state.set_many([(second, None)])
    index = await followed.up_to_now()
    assert index.page("ours", lambda _: True, "", "", 9) == [second.document_id]
    [seen] = (await followed.state.examine_many([first.document_id])).values()
    assert await followed.state.replace_faulty([(seen, first)]) == [True]
    if isinstance(index, Replica):
        await index.reconcile()
    assert index.page("ours", lambda _: True, "", "", 9) == [first.document_id, second.document_id]


@pytest.mark.parametrize("value", _DAMAGED)
async def test_an_index_is_made_over_damaged_records(tmp_path: Path, value: bytes) -> None:
    """What was damaged before a server ever looked at the state stops no server from starting."""
    backend = SqliteBackend(tmp_path / "state.db")
    await backend.compare_and_set(KIND, [Write("damaged", value, None)])
    await RecordDocumentStateStore(backend).set_many([(_found("a.md"), None)])
    index = open_in_state_file(backend.path)
    assert index.page("ours", lambda _: True, "", "", 9) == ["000-ours"]
    index.close()
    replica = Replica(backend, 1, 1)
    await replica.reconcile()
    assert replica.page("ours", lambda _: True, "", "", 9) == ["000-ours"]
    replica.close()
    await backend.close()


def _changed(doc: DocStatus) -> DocStatus:
    """The record a step further on a way that comes back to where it began."""
    if doc.presence is not Presence.PRESENT:
        return transitions.content_changed(doc, "v2", 2, ("s",), NOW)
    if doc.claim is not None:
        return extracted(doc) if doc.extraction.status is Status.IN_PROGRESS else built(doc, ingested(doc))
    return removals.vanished(doc, NOW) if doc.extraction.status is Status.COMPLETED else claimed(doc)


def _ingested(doc: DocStatus) -> DocStatus:
    done = extracted(claimed(doc))
    return built(done, ingested(done))


async def test_the_last_push_of_each_store_is_known(followed: Followed) -> None:
    """The latest time that a document of an organisation was written, by store; a deletion takes nothing away."""
    later = NOW + timedelta(hours=1)
    for number, (org_id, at) in enumerate([("ours", NOW), ("ours", later), ("theirs", later + timedelta(hours=1))]):
        doc = _found(f"{number}.md", org_id, number)
        link = DocumentStoreLink("s", LinkState.INGESTED, last_push_at=at)
        stored = await followed.state.set_many([(doc, None)])
        assert stored[0] is not None
        new = msgspec.structs.replace(stored[0], links={"s": link}, claim=Claim("w", 1, "r"))
        assert (await followed.state.set_many([(new, stored[0])]))[0] is not None
    index = await followed.up_to_now()
    assert index.last_pushes("ours") == {"s": later}
    assert index.last_pushes("nobody") == {}
    assert await last_pushes(followed.state) == {"s": later + timedelta(hours=1)}


@pytest.mark.parametrize("links", ['["a{"]', '{"s": "a{"}', '{"s": {"last_push_at": 5}}', '"a{"', "7"])
async def test_damaged_links_stop_nothing(tmp_path: Path, links: str) -> None:
    """A record whose links nobody can read is written and indexed all the same, and says nothing of pushes."""
    backend = SqliteBackend(tmp_path / "state.db")
    value = f'{{"org_id": "ours", "source_uri": "docs:a", "links": {links}}}'.encode()
    await backend.compare_and_set(KIND, [Write("before", value, None)])
    index = open_in_state_file(backend.path)
    [result] = await backend.compare_and_set(KIND, [Write("after", value, None)])
    assert result.written
    assert index.last_pushes("ours") == {}
    index.close()
    await backend.close()
