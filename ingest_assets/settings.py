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
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ingest_assets.parsing import Chunking, ParseLimits
from resources.artifact_store.open_artifact_store import open_artifact_store
from resources.document_source.document_source import DocumentSource
from resources.document_source.exclusion import DEFAULT_EXCLUDE
from resources.document_source.open_source import open_source
from resources.document_state.retry_policy import RetryPolicy
from resources.document_state.spend_book import Ceilings
from resources.extractor.llm.options import LlmOptions, Price

CONFIG_FILE = "ingest.toml"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_defaults_of_limits = ParseLimits()


class ConfigurationError(Exception):
    """The configuration cannot be used. The message names the file, the key and what is known."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{name}' is no name: use a-z, 0-9, '.', '_' and '-', beginning with a letter or digit")
    return name


class SourceSettings(_Section):
    """A named place documents come from."""

    name: str
    uri: str
    org_id: str = ""
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE

    _name = field_validator("name")(_checked_name)

    @model_validator(mode="after")
    def _can_be_opened(self) -> "SourceSettings":
        try:
            self.open(Path(), "")
        except ValueError as error:
            raise ValueError(f"source '{self.name}': {str(error).rstrip('.')}") from None
        return self

    def open(self, base: Path, org_id: str) -> DocumentSource:
        """The source; nothing is asked of it before it is used.

        Args:
            base: where a relative path counts from.
            org_id: whose documents it holds, unless it says so itself.
        """
        return open_source(self.name, self.uri, base, self.org_id or org_id, self.exclude)


class StoreSettings(_Section):
    """A named index documents are built into."""

    slug: str
    name: str = ""
    kind: str = "duckdb"
    embedder: str = ""
    default: bool = False
    config: dict[str, Any] = Field(default_factory=dict)

    _slug = field_validator("slug")(_checked_name)


class ChunkingSettings(_Section):
    """How text is cut."""

    size: int = Field(1000, ge=50, le=100_000)
    overlap: int = Field(0, ge=0)
    splitter: str = "markdown"

    @model_validator(mode="after")
    def _is_possible(self) -> "ChunkingSettings":
        Chunking(**self.model_dump())
        return self


class LimitSettings(_Section):
    """What one document may cost."""

    file_bytes: int = Field(256 * 1024 * 1024, gt=0)
    wall_seconds: float = Field(_defaults_of_limits.wall_seconds, gt=0, allow_inf_nan=False)
    memory_bytes: int = Field(_defaults_of_limits.memory_bytes, ge=64 * 1024 * 1024)
    text_chars: int = Field(_defaults_of_limits.text_chars, gt=0)
    inflated_bytes: int = Field(_defaults_of_limits.inflated_bytes, gt=0)
    archive_entries: int = Field(_defaults_of_limits.archive_entries, gt=0)
    nesting: int = Field(_defaults_of_limits.nesting, gt=0)
    pages: int = Field(_defaults_of_limits.pages, gt=0)
    cells: int = Field(_defaults_of_limits.cells, gt=0)


class RetrySettings(_Section):
    """How failed documents come back."""

    max_attempts: int = Field(5, ge=1)
    first_pause_seconds: float = Field(30, gt=0, le=1e8)
    factor: float = Field(4, ge=1, le=1000)
    longest_pause_seconds: float = Field(6 * 3600, gt=0, le=1e8)


class LlmSettings(_Section):
    """How a language model is used as the extractor."""

    input_tokens: int = Field(6000, ge=500, description="what one call carries at most, unless one chunk is more")
    max_tokens: int = Field(4096, ge=256, description="what the model may answer to one call")
    concurrency: int = Field(16, ge=1, le=1000, description="calls in flight")
    requests_per_minute: int = Field(0, ge=0, description="0: what the provider's throttling teaches")
    tokens_per_minute: int = Field(0, ge=0)
    timeout_seconds: float = Field(120, gt=0, le=3600)
    allow_unpriced: bool = False


class PriceSettings(_Section):
    """What a model costs, in USD for a million tokens."""

    input: Decimal = Field(ge=0, allow_inf_nan=False)
    output: Decimal = Field(ge=0, allow_inf_nan=False)


class SpendSettings(_Section):
    """What may be spent on models at most, in USD; left out: as much as it costs."""

    per_job_usd: Decimal | None = Field(None, ge=0, allow_inf_nan=False)
    per_day_usd: Decimal | None = Field(None, ge=0, allow_inf_nan=False, description="days are those of UTC")


class RunSettings(_Section):
    """How work is cut into runs."""

    documents: int = Field(1000, ge=1, description="documents a pull run claims before it ends")
    documents_from_command_line: int = Field(2000, ge=1)
    group: int = Field(200, ge=1, le=1000, description="documents in flight and written together")
    parallel: int = Field(1, ge=1, description="pull runs the backlog sensor keeps alive")
    parser_workers: int = Field(0, ge=0, description="0: one a processor, at most 4")
    lease_seconds: float = Field(30, ge=1, le=86_400)
    fail_run_on: Literal["any", "all", "none"] = "any"


class DiscoverySettings(_Section):
    """How sources are listed."""

    interval_seconds: int = Field(30, ge=1)
    changes_per_tick: int = Field(20_000, ge=1)
    max_vanished_share: float = Field(0.5, ge=0, le=1)
    vanish_grace_hours: float = Field(0, ge=0, le=87_840, description="how long a document stays without its object")
    reconcile_hours: float = Field(24, gt=0, le=8_784, description="how often every record is compared, not just news")


class ApiTokenSettings(_Section):
    """A token of the HTTP API, by its hash, as `ingest tokens new` prints it."""

    hash: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    user: str = Field("user", min_length=1, max_length=64)
    scopes: tuple[Literal["read", "write", "admin"], ...] = ("read",)
    org_id: str = ""


class ApiSettings(_Section):
    """The HTTP API of `ingest serve`, and its page."""

    public_url: str = Field("", description="where people reach the page; runs and assets in Dagster link to it")
    dagster_url: str = Field("", description="where people reach the Dagster UI; the page links to it")
    hosts: tuple[str, ...] = Field((), description="other names the server is called by")
    requests_per_minute: int = Field(6000, ge=1, description="of one user")
    body_bytes: int = Field(16 * 1024 * 1024, ge=1024)
    refresh_seconds: float = Field(2, ge=0.1, le=3600, description="of a state in S3 or DynamoDB: what is open")
    reconcile_seconds: float = Field(300, ge=1, le=86_400, description="of the same: all of it")
    tokens: tuple[ApiTokenSettings, ...] = ()

    @field_validator("public_url", "dagster_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        if url and not url.startswith(("http://", "https://")):
            raise ValueError(f"'{url}' is no address of a web page; it begins with http:// or https://")
        return url.rstrip("/")


class Settings(_Section):
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
        return (self.base / self.data_dir).absolute()

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

    def open_sources(self) -> dict[str, DocumentSource]:
        """Every declared source, by name."""
        return {source.name: source.open(self.base, self.org_id) for source in self.sources}

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
    """The first fault in words: where it is and, for an unknown key, what is known there."""
    fault = error.errors()[0]
    where = ".".join(str(part) for part in fault["loc"]) or "the file"
    if fault["type"] == "extra_forbidden":
        known = _known_keys(fault["loc"][:-1])
        return f"unknown key '{where}'. Known: {', '.join(known)}."
    message = fault["msg"].removeprefix("Value error, ")
    return f"{where}: {message}."


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
    "api": ApiSettings,
    "tokens": ApiTokenSettings,
}
