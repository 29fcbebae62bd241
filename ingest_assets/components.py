"""What the work needs, opened from the settings: state, sources, artifacts, extractor, stores."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from ingest_assets.parsing import parser_fingerprint
from ingest_assets.settings import Settings, StoreSettings
from ingest_assets.upkeep.staleness import Configured
from resources.artifact_store.artifact import short_hash
from resources.artifact_store.artifact_store import ArtifactStore
from resources.artifact_store.open_artifact_store import open_artifact_store
from resources.document_source.document_source import DocumentSource
from resources.document_source.local_source import LocalSource
from resources.document_source.source_registry import SourceRegistry
from resources.document_state.document_state_store import DocumentStateStore, RecordDocumentStateStore
from resources.document_state.ingest_jobs import IngestJobs
from resources.embedder.embedder import Embedder
from resources.embedder.open_embedder import open_embedder, stamp_of
from resources.extractor.extractor import Extractor
from resources.extractor.open_extractor import open_extractor
from resources.records.backend import RecordBackend
from resources.records.uri import open_backend
from resources.store.open_store import open_store
from resources.store.store import Store


class UnknownNameError(ValueError):
    """Somebody named a store or source that is not configured."""


@dataclass(frozen=True)
class Target:
    """A store with the embedder it is built with."""

    store: Store
    embedder: Embedder
    parts: Mapping[str, str]  # the configuration's share of a link's fingerprint


class Components:
    """Opens each part when it is first used, so that a command pays only for what it needs."""

    def __init__(
        self, settings: Settings, backend: RecordBackend | None = None, artifacts: ArtifactStore | None = None
    ) -> None:
        self.settings = settings
        if backend is not None:
            self.backend = backend
        if artifacts is not None:
            self.artifacts = artifacts

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
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
    def source_registry(self) -> SourceRegistry:
        """Folders that were named on the command line and are remembered."""
        return SourceRegistry(self.backend)

    @cached_property
    def artifacts(self) -> ArtifactStore:
        """What extraction produced."""
        return open_artifact_store(self.settings.artifact_uri, self.settings.base)

    @cached_property
    def extractor(self) -> Extractor:
        """The configured extractor."""
        return open_extractor(self.settings.extractor)

    @cached_property
    def targets(self) -> dict[str, Target]:
        """Every configured store, by slug."""
        return {settings.slug: self._target(settings) for settings in self.settings.stores}

    @cached_property
    def extraction_parts(self) -> dict[str, str]:
        """The configuration's share of an extraction's fingerprint."""
        return {
            "parser": short_hash(parser_fingerprint())[:12],
            "chunker": self.settings.parser_chunking.fingerprint,
            "extractor": f"{self.extractor.name} {self.extractor.version}",
        }

    @cached_property
    def configured(self) -> Configured:
        """What fingerprints would say of work done now."""
        return Configured(self.extraction_parts, {slug: target.parts for slug, target in self.targets.items()})

    def target(self, slug: str) -> Target:
        """One store.

        Raises:
            UnknownNameError: no store has this slug.
        """
        if slug not in self.targets:
            raise UnknownNameError(f"Unknown store '{slug}'. Known: {', '.join(sorted(self.targets))}.")
        return self.targets[slug]

    async def sources(self) -> dict[str, DocumentSource]:
        """Every source, declared or remembered, by name; a declared one hides a remembered one of its name."""
        found: dict[str, DocumentSource] = {}
        for remembered in await self.source_registry.all():
            found[remembered.name] = LocalSource(remembered.name, remembered.root, remembered.org_id)
        return found | self.settings.open_sources()

    def _target(self, settings: StoreSettings) -> Target:
        name = settings.embedder or self.settings.default_embedder
        stamp = stamp_of(name)
        config = dict(settings.config)
        if settings.kind == "duckdb":
            config["path"] = (
                str(self.settings.base / config["path"])
                if "path" in config
                else str(self.settings.data_path / "stores" / f"{settings.slug}.duckdb")
            )
        store = open_store(settings.kind, settings.slug, stamp, config)
        parts = {"embedder": f"{stamp.name} {stamp.version}", "store": settings.kind}
        return Target(store, open_embedder(name), parts)
