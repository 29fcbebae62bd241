"""What the work needs, opened from the settings: state, sources, artifacts, extractor, stores."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from ingest_assets.parsing import ConfinedUnpacker, parser_fingerprint
from ingest_assets.settings import Settings
from ingest_assets.targets import Target, declared_stores, open_targets
from ingest_assets.upkeep.staleness import Configured
from resources.artifact_store.artifact import short_hash
from resources.artifact_store.artifact_store import ArtifactStore
from resources.artifact_store.open_artifact_store import open_artifact_store
from resources.artifact_store.paid_results.open_journal import open_journal
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.clock import utc_now
from resources.document_source.document_source import DocumentSource
from resources.document_source.exclusion import DEFAULT_EXCLUDE
from resources.document_source.local_source import LocalSource
from resources.document_source.member_source import MemberSource
from resources.document_source.member_tables import MemberTables
from resources.document_source.member_tree import TreeLimits
from resources.document_source.source_registry import SourceRegistry
from resources.document_state.accepted_jobs import AcceptedJobs
from resources.document_state.document_state_store import DocumentStateStore, RecordDocumentStateStore
from resources.document_state.job_records import IngestJobs
from resources.document_state.run_tally import RunTally
from resources.document_state.spend_gate import SpendGate
from resources.document_state.spend_ledger import SpendLedger
from resources.document_state.store_registry import StoreRegistry
from resources.extractor.extractor import Extractor
from resources.extractor.open_extractor import open_extractor
from resources.records.backend import RecordBackend
from resources.records.uri import open_backend
from resources.store.store import StoreError


class UnknownNameError(ValueError):
    """Somebody named a store or source that is not configured."""


class Components:
    """Opens each part when it is first used, so that a command pays only for what it needs."""

    def __init__(
        self, settings: Settings, backend: RecordBackend | None = None, artifacts: ArtifactStore | None = None
    ) -> None:
        self.settings = settings
        self._targets: dict[str, Target] | None = None
        if backend is not None:
            self.backend = backend
        if artifacts is not None:
            self.artifacts = artifacts

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if "extractor" in self.__dict__:
            await self.extractor.close()
        if "unpacker" in self.__dict__:
            self.unpacker.close()
        if "journal" in self.__dict__:
            await self.journal.shut()
        if "backend" in self.__dict__:
            await self.backend.close()

    @cached_property
    def backend(self) -> RecordBackend:
        """Where every record is."""
        return open_backend(self.settings.state_uri, self.settings.base)

    @cached_property
    def state(self) -> DocumentStateStore:
        """The truth about the documents."""
        return RecordDocumentStateStore(self.backend)

    @cached_property
    def jobs(self) -> IngestJobs:
        """The requests."""
        return IngestJobs(self.backend)

    @cached_property
    def accepted_jobs(self) -> AcceptedJobs:
        """The requests that another process is to do."""
        return AcceptedJobs(self.jobs)

    @cached_property
    def source_registry(self) -> SourceRegistry:
        """Folders that were named on the command line and are remembered."""
        return SourceRegistry(self.backend)

    @cached_property
    def artifacts(self) -> ArtifactStore:
        """What extraction produced."""
        return open_artifact_store(self.settings.artifact_uri, self.settings.base)

    @cached_property
    def journal(self) -> PaidResultJournal:
        """The answers of models that were paid for."""
        return open_journal(self.settings.artifact_uri, self.settings.base)

    @cached_property
    def ledger(self) -> SpendLedger:
        """What was spent and is reserved."""
        return SpendLedger(self.backend)

    @cached_property
    def run_tally(self) -> RunTally:
        """How many runs ended how."""
        return RunTally(self.backend)

    @cached_property
    def spend_gate(self) -> SpendGate:
        """What admits paid calls, and settles them."""
        return SpendGate(self.ledger, self.journal)

    @cached_property
    def extractor(self) -> Extractor:
        """The configured extractor."""
        return open_extractor(self.settings.extractor, self.settings.llm_options)

    @cached_property
    def store_registry(self) -> StoreRegistry:
        """Every store there is or was, with what was decided of it."""
        return StoreRegistry(self.backend)

    async def register_stores(self) -> None:
        """Bring the records of the stores up to the configuration; whatever begins to work does this first.

        A record has the embedder of the data. So one that the configuration names goes into it once the store takes
        that one's vectors: it is empty, or was made anew.
        """
        records = await self.store_registry.register(
            declared_stores(self.settings), self.settings.default_embedder, utc_now()
        )
        self._targets = open_targets(self.settings, records)
        for store in self.settings.stores:
            if store.embedder and store.embedder != records[store.slug].embedder:
                with contextlib.suppress(StoreError):  # who writes into it tells of it
                    if await asyncio.to_thread(self._targets[store.slug].store.takes_vectors):
                        await self.store_registry.adopt(records[store.slug], store.embedder)

    async def targets(self) -> Mapping[str, Target]:
        """Every configured store, by slug, as it is recorded; one that is not, as it would be."""
        if self._targets is None:
            self._targets = open_targets(self.settings, await self.store_registry.all())
        return self._targets

    @cached_property
    def extraction_parts(self) -> dict[str, str]:
        """The configuration's share of an extraction's fingerprint."""
        return {
            "parser": short_hash(parser_fingerprint())[:12],
            "chunker": self.settings.parser_chunking.fingerprint,
            **self.extractor.parts,
        }

    async def configured(self) -> Configured:
        """What fingerprints would say of work done now."""
        targets = await self.targets()
        return Configured(self.extraction_parts, {slug: target.parts for slug, target in targets.items()})

    async def target(self, slug: str) -> Target:
        """One store.

        Raises:
            UnknownNameError: no store has this slug.
        """
        targets = await self.targets()
        if slug not in targets:
            raise UnknownNameError(f"Unknown store '{slug}'. Known: {', '.join(sorted(targets))}.")
        return targets[slug]

    @cached_property
    def unpacker(self) -> ConfinedUnpacker:
        """Opens archives and mails."""
        return ConfinedUnpacker(self.settings.parse_limits)

    def with_members(self, source: DocumentSource, exclude: Sequence[str] = DEFAULT_EXCLUDE) -> DocumentSource:
        """A source, and what lies in its archives and mails."""
        limits = self.settings.parse_limits
        made_under = f"{limits}; {self.settings.limits.file_bytes}; {parser_fingerprint()}"
        return MemberSource(
            source,
            self.unpacker,
            MemberTables(self.artifacts, source.name, source.org_id, short_hash(made_under)),
            TreeLimits(limits.nesting, limits.archive_entries, limits.inflated_bytes),
            self.settings.limits.file_bytes,
            exclude,
        )

    def folder(self, name: str, root: Path, org_id: str) -> DocumentSource:
        """A folder that was named on the command line, as a source."""
        return self.with_members(LocalSource(name, root, org_id, own=self.settings.own_files))

    async def sources(self) -> dict[str, DocumentSource]:
        """Every source, declared or remembered, by name; a declared one hides a remembered one of its name."""
        found: dict[str, DocumentSource] = {}
        for remembered in await self.source_registry.all():
            found[remembered.name] = self.folder(remembered.name, remembered.root, remembered.org_id)
        for declared, source in zip(self.settings.sources, self.settings.open_sources().values(), strict=True):
            found[source.name] = self.with_members(source, declared.exclude) if declared.members else source
        return found
