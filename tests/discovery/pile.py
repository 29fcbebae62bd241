"""A folder of documents with everything discovery needs, and the rules that hold whatever happened to it."""

import contextlib
import copy
from collections import Counter
from datetime import timedelta
from typing import Self

from resources.artifact_store.sqlite_artifact_store import SqliteArtifactStore
from resources.clock import utc_now
from resources.document_source.document_ids import document_id, source_uri
from resources.document_source.local_source import LocalSource
from resources.document_state import removals, transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.model import LISTED, UNWANTED, Presence
from resources.records.record import Write
from sensors.discovered import Discovered
from sensors.listing import Listings
from sensors.plan import Discovery


class Died(BaseException):
    """The process ends here."""


class RecordedPartitions:
    """The set of documents Dagster knows; dies after adding if it is told to."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.dies = False

    def add(self, document_ids) -> None:
        """See Partitions."""
        self.ids.update(document_ids)
        if self.dies:
            raise Died


class Pile:
    """A folder of documents with everything discovery needs."""

    def __init__(self, folder, backend) -> None:
        self.root = folder / "documents"
        self.root.mkdir()
        self.source = LocalSource("docs", self.root, "default")
        self.state = RecordDocumentStateStore(backend)
        self.backend = backend
        self.artifacts = SqliteArtifactStore(folder / "artifacts.db")
        self.partitions = RecordedPartitions()
        self.grace = timedelta()

    def put(self, *keys: str, text: str = "text") -> None:
        """Write files."""
        for key in keys:
            path = self.root / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def hide(self, key: str) -> None:
        """Take a file out of the folder, to come back as it was."""
        (self.root / key).rename(self.root.with_name("hidden"))

    def bring_back(self, key: str) -> None:
        """Put a hidden file where it was, if it is hidden; its version is the one it had."""
        with contextlib.suppress(FileNotFoundError):
            self.root.with_name("hidden").rename(self.root / key)

    def remove(self, *keys: str) -> None:
        """Delete files."""
        for key in keys:
            (self.root / key).unlink()

    def discovery(self, stores=("s",), share=0.5) -> Discovery:
        """A discovery as a new process would make it."""
        listings = Listings(self.artifacts, self.backend)
        return Discovery(self.source, self.state, listings, stores, share, self.grace)

    async def run(self, clock=utc_now, **options) -> Discovered:
        """One discovery."""
        return await self.discovery().run(self.partitions, clock, **options)

    def of_another_process(self) -> Self:
        """The same folder, state and artifacts, as another process has them open."""
        other = copy.copy(self)
        other.source = LocalSource("docs", self.root, "default")
        other.use(copy.copy(self.backend))
        return other

    def use(self, backend) -> None:
        """Another state store takes the place of this one."""
        self.backend, self.state = backend, RecordDocumentStateStore(backend)

    async def snapshot(self) -> dict[str, str] | None:
        """The entries that are confirmed now."""
        return await Listings(self.artifacts, self.backend).of(self.source).read(utc_now())

    async def check_snapshot(self) -> None:
        """The rule: what is confirmed has every present record, with its version or none; any of what is unwanted."""
        entries = await self.snapshot()
        if entries is None:
            return
        docs = {doc.source_uri: doc async for doc in self.state.iter_statuses()}
        assert entries.keys() >= {uri for uri, doc in docs.items() if doc.presence in LISTED}
        for uri, version in entries.items():
            doc = docs[uri]
            assert not version or doc.presence in UNWANTED | {Presence.PRESENT}
            assert doc.presence in UNWANTED or version in {"", doc.content_version}

    async def check_truth(self) -> None:
        """The records of present documents are what the folder has."""
        listed = {item.source_uri: item.content_version for item in self.source.list_objects()}
        docs = [doc async for doc in self.state.iter_statuses()]
        assert {d.source_uri: d.content_version for d in docs if d.presence is Presence.PRESENT} == listed
        assert self.partitions.ids >= {d.document_id for d in docs if d.presence is not Presence.DELETED}

    def ids(self, *keys: str) -> list[str]:
        """Document ids."""
        return [document_id("default", source_uri("docs", key.encode())) for key in keys]

    async def doc(self, key: str):
        """The record of a file."""
        return await self.state.get_status(*self.ids(key))

    async def change(self, key: str, change) -> None:
        """Change a record as some other part of the program does."""
        doc = await self.doc(key)
        assert (await self.state.set_many([(change(doc), doc)]))[0] is not None

    async def lose(self, *keys: str) -> None:
        """Records disappear, by no doing of ours."""
        for key in self.ids(*keys):
            found = await self.backend.read("document", key)
            await self.backend.compare_and_set("document", [Write(key, None, found.stamp)])

    async def claim(self, key: str) -> None:
        """A worker takes it."""
        await self.change(key, lambda doc: transitions.claimed(doc, "w", "run", utc_now(), extract=True))

    async def delete_by_hand(self, key: str) -> None:
        """A person has it deleted, and a worker does it."""
        await self.change(key, lambda doc: removals.deletion_requested(doc, utc_now()))
        await self.delete(key)

    async def delete(self, key: str) -> None:
        """A worker takes it out of every store."""
        await self.change(key, lambda doc: transitions.claimed(doc, "w", "run", utc_now(), extract=False))
        await self.change(key, lambda doc: removals.removed(doc, (), utc_now()))

    async def what_is_known(self):
        """Each document's presence, status and content, without what differs from one run to another."""
        return {
            doc.source_uri: (doc.presence, doc.extraction.status, doc.content_version, doc.due_in, doc.claim)
            async for doc in self.state.iter_statuses()
        }


def asked(pile: Pile) -> Counter[str]:
    """What the state is asked from now on."""
    calls: Counter[str] = Counter()

    def counted(name, operation):
        async def ask(*arguments):
            calls[name] += 1
            return await operation(*arguments)

        return ask

    for name in ("_read", "_write", "_list", "_list_keys", "_list_due", "_count_labels"):
        setattr(pile.backend, name, counted(name, getattr(pile.backend, name)))
    return calls


def in_hours(hours: float):
    """A clock that is ahead."""
    return lambda: utc_now() + timedelta(hours=hours)
