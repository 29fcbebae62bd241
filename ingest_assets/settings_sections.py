"""The tables of `ingest.toml`: their keys, defaults and bounds."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ingest_assets.parsing import Chunking, ParseLimits
from resources.document_source.document_source import DocumentSource
from resources.document_source.exclusion import DEFAULT_EXCLUDE
from resources.document_source.open_source import open_source
from resources.document_source.own_files import NO_OWN_FILES, OwnFiles

IN_A_FILE = "duckdb"  # the kind of a store that is a file of ours
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_defaults_of_limits = ParseLimits()


class Section(BaseModel):
    """A table; an unknown key in it is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{name}' is no name: use a-z, 0-9, '.', '_' and '-', beginning with a letter or digit")
    return name


class SourceSettings(Section):
    """A named place documents come from."""

    name: str
    uri: str
    org_id: str = ""
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    members: bool = Field(default=True, description="what lies in archives and mails are documents of their own")

    _name = field_validator("name")(_checked_name)

    @model_validator(mode="after")
    def _can_be_opened(self) -> "SourceSettings":
        try:
            self.open(Path(), "")
        except ValueError as error:
            raise ValueError(f"source '{self.name}': {str(error).rstrip('.')}") from None
        return self

    def open(self, base: Path, org_id: str, own: OwnFiles = NO_OWN_FILES) -> DocumentSource:
        """The source; nothing is asked of it before it is used.

        Args:
            base: where a relative path counts from.
            org_id: whose documents it holds, unless it says so itself.
            own: what this program keeps.
        """
        return open_source(self.name, self.uri, base, self.org_id or org_id, self.exclude, own)


class StoreSettings(Section):
    """A named index documents are built into."""

    slug: str
    name: str = ""
    kind: str = IN_A_FILE
    embedder: str = ""
    default: bool = False
    config: dict[str, Any] = Field(default_factory=dict)

    _slug = field_validator("slug")(_checked_name)


class ChunkingSettings(Section):
    """How text is cut."""

    size: int = Field(1000, ge=50, le=100_000)
    overlap: int = Field(0, ge=0)
    splitter: str = "markdown"

    @model_validator(mode="after")
    def _is_possible(self) -> "ChunkingSettings":
        Chunking(**self.model_dump())
        return self


class LimitSettings(Section):
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


class RetrySettings(Section):
    """How failed documents come back."""

    max_attempts: int = Field(5, ge=1)
    first_pause_seconds: float = Field(30, gt=0, le=1e8)
    factor: float = Field(4, ge=1, le=1000)
    longest_pause_seconds: float = Field(6 * 3600, gt=0, le=1e8)


class LlmSettings(Section):
    """How a language model is used as the extractor."""

    input_tokens: int = Field(6000, ge=500, description="what one call carries at most, unless one chunk is more")
    max_tokens: int = Field(4096, ge=256, description="what the model may answer to one call")
    concurrency: int = Field(16, ge=1, le=1000, description="calls in flight")
    requests_per_minute: int = Field(0, ge=0, description="0: what the provider's throttling teaches")
    tokens_per_minute: int = Field(0, ge=0)
    timeout_seconds: float = Field(120, gt=0, le=3600)
    allow_unpriced: bool = False


class PriceSettings(Section):
    """What a model costs, in USD for a million tokens."""

    input: Decimal = Field(ge=0, allow_inf_nan=False)
    output: Decimal = Field(ge=0, allow_inf_nan=False)


class SpendSettings(Section):
    """What may be spent on models at most, in USD; left out: as much as it costs."""

    per_job_usd: Decimal | None = Field(None, ge=0, allow_inf_nan=False)
    per_day_usd: Decimal | None = Field(None, ge=0, allow_inf_nan=False, description="days are those of UTC")
    wait_seconds: float = Field(
        600, ge=0, le=86_400, description="how long a batch waits for money that others have reserved; 0: not at all"
    )


class RunSettings(Section):
    """How work is cut into runs."""

    documents: int = Field(1000, ge=1, description="documents a pull run claims before it ends")
    documents_from_command_line: int = Field(2000, ge=1)
    group: int = Field(200, ge=1, le=1000, description="documents in flight and written together")
    parallel: int = Field(1, ge=1, description="pull runs the backlog sensor keeps alive")
    parser_workers: int = Field(0, ge=0, description="0: one a processor, at most 4")
    lease_seconds: float = Field(30, ge=1, le=86_400)
    fail_run_on: Literal["any", "all", "none"] = "any"


class DiscoverySettings(Section):
    """How sources are listed."""

    interval_seconds: int = Field(30, ge=1)
    changes_per_tick: int = Field(20_000, ge=1)
    max_vanished_share: float = Field(0.5, ge=0, le=1)
    vanish_grace_hours: float = Field(0, ge=0, le=87_840, description="how long a document stays without its object")
    reconcile_hours: float = Field(24, gt=0, le=8_784, description="how often every record is compared, not just news")


class ApiTokenSettings(Section):
    """A token of the HTTP API, by its hash, as `ingest tokens new` prints it."""

    hash: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    user: str = Field("user", min_length=1, max_length=64)
    scopes: tuple[Literal["read", "write", "admin"], ...] = ("read",)
    org_id: str = ""


class ApiSettings(Section):
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


class GcSettings(Section):
    """What `ingest gc` keeps."""

    keep_jobs_days: float = Field(90, ge=0, le=36_600, description="how long a job stays after it has ended")
