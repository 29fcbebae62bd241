"""The one configuration: `ingest.toml` plus a few environment variables, as typed settings.

The file's path comes from INGEST_CONFIG, else it is `ingest.toml` in the working directory; relative paths inside count
from its folder. Without a file the defaults stand: the source `samples`, the store `default`, everything below
`.ingest`.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from ingest_assets.parsing import Chunking, ParseLimits
from ingest_assets.settings_sections import (
    IN_A_FILE,
    ApiSettings,
    ApiTokenSettings,
    ChunkingSettings,
    DiscoverySettings,
    GcSettings,
    LimitSettings,
    LlmSettings,
    PriceSettings,
    RetrySettings,
    RunSettings,
    Section,
    SourceSettings,
    SpendSettings,
    StoreSettings,
)
from resources.artifact_store.open_artifact_store import open_artifact_store
from resources.artifact_store.paid_results.open_journal import beside_artifacts
from resources.document_source.document_source import DocumentSource
from resources.document_source.own_files import OwnFiles
from resources.document_state.retry_policy import RetryPolicy
from resources.document_state.spend_book import Ceilings
from resources.extractor.llm.options import LlmOptions, Price
from resources.local_path import local_path, sqlite_path

CONFIG_FILE = "ingest.toml"


class ConfigurationError(Exception):
    """The configuration cannot be used. The message names the file, the key and what is known."""


class Settings(Section):
    """Everything `ingest.toml` can say."""

    data_dir: str = ".ingest"
    document_state_store: str = ""
    artifact_store: str = ""
    org_id: str = "default"
    extractor: str = "local"
    default_embedder: str = "wordllama"
    sources: tuple[SourceSettings, ...] = (SourceSettings(name="samples", uri="samples"),)
    stores: tuple[StoreSettings, ...] = (StoreSettings(slug="default"),)
    chunking: ChunkingSettings = ChunkingSettings()
    limits: LimitSettings = LimitSettings()
    llm: LlmSettings = LlmSettings()
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    spend: SpendSettings = SpendSettings()
    retry: RetrySettings = RetrySettings()
    runs: RunSettings = RunSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    gc: GcSettings = GcSettings()
    api: ApiSettings = ApiSettings()

    base: Path = Field(default_factory=Path.cwd, exclude=True)
    config_file: Path | None = Field(default=None, exclude=True)

    @field_validator("artifact_store")
    @classmethod
    def _is_an_artifact_store(cls, uri: str) -> str:
        if uri:
            try:
                open_artifact_store(uri, Path())
            except ValueError as error:
                raise ValueError(str(error).rstrip(".")) from None
        return uri

    @model_validator(mode="after")
    def _names_are_unique(self) -> "Settings":
        for kind, names in (("sources", [s.name for s in self.sources]), ("stores", [s.slug for s in self.stores])):
            doubled = sorted({name for name in names if names.count(name) > 1})
            if doubled:
                raise ValueError(f"two [[{kind}]] are named {', '.join(doubled)}")
            # Dagster's names have neither dots nor dashes.
            in_dagster = [re.sub(r"[.-]", "_", name) for name in names]
            if len(set(in_dagster)) < len(names) or "named_folders" in in_dagster:
                raise ValueError(f"[[{kind}]] {', '.join(names)}: names must differ in more than '.', '-' and '_'")
        return self

    @model_validator(mode="after")
    def _one_store_is_the_default(self) -> "Settings":
        marked = [store.slug for store in self.stores if store.default]
        if len(marked) > 1:
            raise ValueError(f"[[stores]] {', '.join(marked)}: only one can have default = true")
        return self

    @property
    def default_store(self) -> str:
        """The store that is meant when none is named: the one marked so, else `default`, else the first; "": none."""
        slugs = [store.slug for store in self.stores]
        marked = [store.slug for store in self.stores if store.default]
        return (marked or [slug for slug in slugs if slug == "default"] or [*slugs, ""])[0]

    @cached_property
    def data_path(self) -> Path:
        """The one data folder, absolute."""
        return local_path(self.base, self.data_dir)

    @cached_property
    def state_uri(self) -> str:
        """The state store's URI; a relative path in it counts from the configuration's folder."""
        return self.document_state_store or f"sqlite:///{quote(str(self.data_path))}/state.db"

    @cached_property
    def artifact_uri(self) -> str:
        """The artifact store's URI; a relative path in it counts from the configuration's folder."""
        return self.artifact_store or f"sqlite:///{quote(str(self.data_path))}/artifacts/artifacts.db"

    @property
    def dagster_home(self) -> Path:
        """Dagster's own folder."""
        return self.data_path / "dagster"

    @cached_property
    def own_files(self) -> OwnFiles:
        """What this program keeps here. Not all of the data folder: somebody may have documents beside our files."""
        folders = [self.data_path / name for name in ("dagster", "artifacts", "stores", "logs")]
        files = [self.config_file] if self.config_file else []
        files += [self.duckdb_file(store.slug, store.config) for store in self.stores if store.kind == IN_A_FILE]
        if self.state_uri.startswith("sqlite:"):
            files.append(sqlite_path(self.base, self.state_uri))
        if self.artifact_uri.startswith("sqlite:"):
            artifacts = sqlite_path(self.base, self.artifact_uri)
            files += [artifacts, beside_artifacts(artifacts)]
        return OwnFiles([*folders, *files])

    def duckdb_file(self, slug: str, config: Mapping[str, Any]) -> Path:
        """The file of a DuckDB store with these options."""
        if "path" in config:
            return local_path(self.base, str(config["path"]))
        return self.data_path / "stores" / f"{slug}.duckdb"

    def open_sources(self) -> dict[str, DocumentSource]:
        """Every declared source, by name."""
        return {source.name: source.open(self.base, self.org_id, self.own_files) for source in self.sources}

    @cached_property
    def parse_limits(self) -> ParseLimits:
        """The limits the parser keeps."""
        return ParseLimits(**self.limits.model_dump(exclude={"file_bytes"}))

    @cached_property
    def parser_chunking(self) -> Chunking:
        """How the parser cuts text."""
        return Chunking(**self.chunking.model_dump())

    @cached_property
    def llm_options(self) -> LlmOptions:
        """How a language model is used, prices included."""
        prices = {model: Price(price.input, price.output) for model, price in self.prices.items()}
        return LlmOptions(**self.llm.model_dump(), prices=prices)

    @cached_property
    def ceilings(self) -> Ceilings:
        """What may be spent at most, in millionths of a dollar, rounded down."""
        wanted = (self.spend.per_job_usd, self.spend.per_day_usd)
        return Ceilings(*(None if usd is None else int(usd * 1_000_000) for usd in wanted))

    @cached_property
    def retry_policy(self) -> RetryPolicy:
        """When failed documents come back."""
        return RetryPolicy(
            self.retry.max_attempts,
            timedelta(seconds=self.retry.first_pause_seconds),
            self.retry.factor,
            timedelta(seconds=self.retry.longest_pause_seconds),
        )

    @property
    def keep_jobs(self) -> timedelta:
        """How long a job stays after it has ended."""
        return timedelta(days=self.gc.keep_jobs_days)

    @property
    def lease(self) -> timedelta:
        """How long a silent worker keeps what it holds."""
        return timedelta(seconds=self.runs.lease_seconds)

    @property
    def parser_workers(self) -> int:
        """How many parser processes a run has."""
        return self.runs.parser_workers or min(os.cpu_count() or 1, 4)


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the configuration.

    Raises:
        ConfigurationError: the file is missing although named, is no TOML, or says something unknown or impossible.
    """
    named = environment.get("INGEST_CONFIG", "")
    path = Path(named or CONFIG_FILE).absolute()
    values: dict[str, Any] = {}
    if named or path.exists():
        values = _read(path)
    values |= {key: environment[name] for name, key in _FROM_ENVIRONMENT.items() if environment.get(name)}
    for reserved in ("base", "config_file"):  # fields of ours that no file may set
        if reserved in values:
            raise ConfigurationError(f"{path}: unknown key '{reserved}'. Known: {', '.join(_known_keys(()))}.")
    try:
        return Settings(**values, base=path.parent, config_file=path if named or path.exists() else None)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {_explained(error)}") from None


_FROM_ENVIRONMENT = {
    "INGEST_DATA_DIR": "data_dir",
    "INGEST_DOCUMENT_STATE_STORE": "document_state_store",
    "INGEST_ARTIFACT_STORE": "artifact_store",
    "DEFAULT_EMBEDDER": "default_embedder",
}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"{path} does not exist. INGEST_CONFIG names it; correct or unset it.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is no valid TOML: {error}.") from None


def _explained(error: ValidationError) -> str:
    """One fault in words. An unknown key goes before others: what is missing is often just misspelt."""
    faults = error.errors()
    fault = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    where = ".".join(str(part) for part in fault["loc"]) or "the file"
    if fault["type"] == "extra_forbidden":
        known = _known_keys(fault["loc"][:-1])
        return f"unknown key '{where}'. Known: {', '.join(known)}."
    if fault["type"] == "tuple_type" and where in _TABLES_OF_MANY:
        return f"{where}: there can be several, so each is a table with two brackets: [[{where}]]."
    message = _IN_TOML.get(fault["type"], fault["msg"].removeprefix("Value error, ").rstrip("."))
    return f"{where}: {message}."


_TABLES_OF_MANY = ("sources", "stores", "api.tokens")
_IN_TOML = {  # what pydantic calls by Python's names
    "tuple_type": "this is a list, in brackets",
    "model_type": "this is a table, with keys",
    "dict_type": "this is a table, with keys",
    "missing": "this key is missing",
}


def _known_keys(place: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Settings
    for part in place:
        if isinstance(part, str):
            model = _SECTIONS.get(part, model)  # a model's name in [prices] is no section
    return sorted(name for name, field in model.model_fields.items() if not field.exclude)


_SECTIONS: dict[str, type[BaseModel]] = {
    "sources": SourceSettings,
    "stores": StoreSettings,
    "chunking": ChunkingSettings,
    "limits": LimitSettings,
    "llm": LlmSettings,
    "prices": PriceSettings,
    "spend": SpendSettings,
    "retry": RetrySettings,
    "runs": RunSettings,
    "discovery": DiscoverySettings,
    "gc": GcSettings,
    "api": ApiSettings,
    "tokens": ApiTokenSettings,
}
