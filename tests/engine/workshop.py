"""The engine with real parts around it: a folder, a state, artifacts, parsers in child processes, DuckDB stores."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from ingest_assets.engine.build_stage import BuildStage
from ingest_assets.engine.document_report import DocumentReport
from ingest_assets.engine.entry_finding import EntryFinder, FreeEntries
from ingest_assets.engine.extraction_stage import ExtractionStage
from ingest_assets.engine.ingest_run import IngestRun
from ingest_assets.engine.progress import Milestone
from ingest_assets.engine.run_context import RunContext
from ingest_assets.engine.selection import Selection
from ingest_assets.parsing import ParserPool
from ingest_assets.targets import Target
from resources.artifact_store.paid_results.sqlite_journal import SqliteJournal
from resources.artifact_store.sqlite_artifact_store import SqliteArtifactStore
from resources.clock import utc_now
from resources.document_source.document_ids import document_id, source_uri
from resources.document_source.local_source import LocalSource
from resources.document_state import transitions
from resources.document_state.document_state_store import RecordDocumentStateStore
from resources.document_state.ingest_jobs import DocumentResult, JobStage, Outcome
from resources.document_state.model import DocStatus
from resources.document_state.retry_policy import RetryPolicy
from resources.document_state.workers import KIND as WORKER_KIND
from resources.document_state.workers import Worker
from resources.embedder.hash_embedder import HashEmbedder
from resources.extractor.extractor import Extractor
from resources.extractor.none_extractor import NoneExtractor
from resources.records.backend import RecordBackend
from resources.store.duckdb.duckdb_store import DuckDBStore
from resources.store.store import Store
from sensors.discovered import Discovered
from sensors.listing import Listings
from sensors.plan import Discovery

POLICY = RetryPolicy(max_attempts=3, first_pause=timedelta(hours=1))
EMBEDDER = HashEmbedder()
STAMP = HashEmbedder.stamp()
CONFIG_PARTS = {"parser": "p1", "chunker": "c1", "extractor": "none 1"}


class Interrupted(BaseException):
    """What Dagster raises in a run at a signal is, like this, no Exception."""


class RecordedReports:
    """A reporter that remembers; with `raises`, each call of `at` ends in it."""

    def __init__(self, raises: BaseException | None = None, at: str = "") -> None:
        self.reports: list[DocumentReport] = []
        self.groups: list[int] = []
        self.stages: list[JobStage] = []
        self.reached: list[Milestone] = []
        self._raises = raises
        self._at = at

    def reaches(self, milestone: Milestone) -> None:
        """See Progress."""
        self.reached.append(milestone)
        if self._raises is not None and self._at == milestone:
            raise self._raises

    def enters(self, stage: JobStage) -> None:
        """See Progress."""
        self.stages.append(stage)

    async def estimated(self, micro_usd: int, refusal: str) -> None:
        """See Progress."""

    async def group_done(self, reports: Sequence[DocumentReport]) -> None:
        """See Reporter."""
        self.reports += reports
        self.groups.append(len(reports))
        if self._raises is not None and self._at == "group_done":
            raise self._raises

    @property
    def results(self) -> dict[str, DocumentResult]:
        """The result of each document, by its key in the source."""
        return {report.result.filename: report.result for report in self.reports}

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """The outcome of each document, by its key in the source."""
        return {key: result.status for key, result in self.results.items()}

    def of(self, key: str) -> DocumentReport:
        """The one report of a document."""
        [report] = [report for report in self.reports if report.result.filename == key]
        return report


class AllPartitions:
    """Remembers which documents became partitions."""

    def __init__(self) -> None:
        self.ids: set[str] = set()

    def add(self, document_ids: Sequence[str]) -> None:
        """See Partitions."""
        self.ids.update(document_ids)


class CountingPool(ParserPool):
    """A real pool of parsers that counts what it is given."""

    n_parsed = 0

    def parse_many(self, items):
        """See ParserPool."""

        def counted():
            for item in items:
                self.n_parsed += 1
                yield item

        return super().parse_many(counted())


class Workshop:
    """Everything a run needs, made in one folder."""

    def __init__(self, folder: Path, backend: RecordBackend, pool: CountingPool) -> None:
        self.folder = folder
        self.root = folder / "documents"
        self.root.mkdir(exist_ok=True)
        self.backend = backend
        self.pool = pool
        self.state = RecordDocumentStateStore(backend)
        self.artifacts = SqliteArtifactStore(folder / "artifacts.db")
        self.journal = SqliteJournal(folder / "artifacts-paid.db")
        self.source = LocalSource("docs", self.root, "default")
        self.stores: dict[str, Store] = {"s": self.duckdb("s")}
        self.extractor: Extractor = NoneExtractor()
        self.config_parts = dict(CONFIG_PARTS)
        self.group = 10

    def duckdb(self, slug: str) -> DuckDBStore:
        """A store in the folder."""
        return DuckDBStore(slug, self.folder / f"{slug}.duckdb", STAMP)

    def put(self, key: str, text: str | bytes) -> None:
        """Write a file of the source."""
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    async def discover(self) -> Discovered:
        """List the source and bring the records up to it."""
        discovery = Discovery(self.source, self.state, Listings(self.artifacts, self.backend), list(self.stores), 0.5)
        return await discovery.run(AllPartitions(), utc_now)

    async def worker(self, run_id: str = "run") -> Worker:
        """A new worker."""
        return await Worker.register(self.backend, run_id, utc_now())

    def entries(self, worker: Worker, reporter: RecordedReports) -> EntryFinder:
        """Where a run gets its entries from."""
        return FreeEntries(self.extractor, reporter)

    def engine(self, worker: Worker, reporter: RecordedReports, selection: Selection | None = None) -> IngestRun:
        """A run of a worker."""
        run = RunContext(
            worker,
            selection or Selection(tuple(self.stores)),
            self.state,
            self.artifacts,
            self.journal,
            ExtractionStage(
                {"docs": self.source},
                self.pool,
                self.entries(worker, reporter),
                self.artifacts,
                self.config_parts,
                10**6,
                reporter,
            ),
            {
                slug: BuildStage(Target(store, EMBEDDER, {"embedder": str(STAMP), "store": store.kind}))
                for slug, store in self.stores.items()
            },
            POLICY,
            reporter,
        )
        return IngestRun(run, reporter, self.group)

    async def pull(self, limit: int = 1000, run_id: str = "run", **selection) -> RecordedReports:
        """A pull run from register to end."""
        worker, reporter = await self.worker(run_id), RecordedReports()
        await self.engine(worker, reporter, self._selection(selection)).pull(limit)
        await worker.end()
        return reporter

    async def work_on(self, *keys: str, run_id: str = "run", **selection) -> RecordedReports:
        """A run over named documents, from register to end."""
        worker, reporter = await self.worker(run_id), RecordedReports()
        await self.engine(worker, reporter, self._selection(selection)).work_on([self.id_of(key) for key in keys])
        await worker.end()
        return reporter

    def id_of(self, key: str) -> str:
        """The document id of a file."""
        return document_id("default", source_uri("docs", key.encode()))

    async def doc(self, key: str) -> DocStatus:
        """The record of a file."""
        doc = await self.state.get_status(self.id_of(key))
        assert doc is not None
        return doc

    def held(self, store: str = "s") -> dict[str, int]:
        """What a store really holds: chunks by document id."""
        return {held.document_id: held.n_chunks for held in self.duckdb(store).held_documents()}

    def found(self, text: str, store: str = "s") -> str | None:
        """The nearest text a store holds."""
        hits = self.duckdb(store).search(EMBEDDER.embed([text])[0], 1, org_id="default")
        return hits[0].text if hits else None

    def _selection(self, given) -> Selection:
        return Selection(**({"stores": tuple(self.stores)} | given))


async def take_over(shop, doc):
    """What a sweep does with a document of a dead worker, and another worker then."""
    released = transitions.released(doc, utc_now())
    [stored] = await shop.state.set_many([(released, doc)])
    [claimed] = await shop.state.set_many(
        [(transitions.claimed(stored, "other", "other run", utc_now(), extract=True), stored)]
    )
    return claimed


async def workers(shop):
    """Ids of the workers that left a record."""
    return [record.key async for record in shop.backend.list_records(WORKER_KIND)]
