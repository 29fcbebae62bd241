"""How a command ends: every foreseen fault becomes one sentence on stderr and an exit code."""

import signal
from collections.abc import Callable
from typing import NoReturn

import typer

from ingest_assets.cli.editor import NoEditorError
from ingest_assets.cli.inspect import UnknownDocumentError
from ingest_assets.cli.output import Exit, complain
from ingest_assets.components import UnknownNameError
from ingest_assets.dagster_databases import DagsterDatabaseError
from ingest_assets.requests.asking import AskedWronglyError
from ingest_assets.requests.deleting import NotDeletedError
from ingest_assets.requests.request import JobInterruptedError
from ingest_assets.requests.scope import NoSuchPathError
from ingest_assets.runs.run_error import RunError
from ingest_assets.runs.stopping import heed_sigterm, stopped_by
from ingest_assets.settings import ConfigurationError
from ingest_assets.upkeep.checkpoint_import import CheckpointError
from ingest_assets.upkeep.correcting import DocumentBusyError, NotCorrectableError
from ingest_assets.upkeep.edits import EditError
from resources.artifact_store.artifact_store import ArtifactStoreError
from resources.artifact_store.corrections import ChunkChangedError, UnknownChunkError
from resources.document_source.document_source import SourceError
from resources.document_state.accepted_jobs import JobBegunError
from resources.document_state.ingest_jobs import UnknownJobError
from resources.document_state.workers import LeaseLostError
from resources.embedder.open_embedder import UnknownEmbedderError
from resources.extractor.extractor import ExtractorConfigError
from resources.extractor.open_extractor import UnknownExtractorError
from resources.records.backend import BackendError, WrongOptionError
from resources.records.copying import NothingToCopyError, TargetNotEmptyError, UnfinishedCopyError
from resources.records.uri import UnknownSchemeError
from resources.store.store import StoreConfigError, StoreError

_WRONG_USAGE = (
    ConfigurationError,
    UnknownNameError,
    NoSuchPathError,
    UnknownJobError,
    JobBegunError,
    UnknownEmbedderError,
    UnknownExtractorError,
    ExtractorConfigError,
    UnknownSchemeError,
    WrongOptionError,
    StoreConfigError,
    UnknownDocumentError,
    TargetNotEmptyError,
    NothingToCopyError,
    UnfinishedCopyError,
    CheckpointError,
    AskedWronglyError,
    NotDeletedError,
    EditError,
    NoEditorError,
    UnknownChunkError,
)
_FAULTS = (
    BackendError,
    StoreError,
    ArtifactStoreError,
    SourceError,
    RunError,
    DagsterDatabaseError,
    LeaseLostError,
    TimeoutError,
    ChunkChangedError,
    DocumentBusyError,
    NotCorrectableError,
)


def finish(command: Callable[[], int]) -> NoReturn:
    """Run a command and exit with its code. SIGTERM stops it as Ctrl-C does."""
    heed_sigterm()
    try:
        code = command()
    except KeyboardInterrupt as stop:
        is_terminated = stopped_by() is signal.SIGTERM
        complain(f"{'Terminated' if is_terminated else 'Interrupted'}. {_what_is_left(stop)}")
        code = Exit.TERMINATED if is_terminated else Exit.INTERRUPTED
    except _WRONG_USAGE as error:
        complain(str(error))
        code = Exit.USAGE
    except _FAULTS as error:
        complain(str(error))
        code = Exit.FAILED
    except OSError as error:
        complain(f"{error.strerror or error}: {error.filename or 'no file named'}. Nothing was lost; run it again.")
        code = Exit.FAILED
    raise typer.Exit(code)


def _what_is_left(stop: KeyboardInterrupt) -> str:
    """What became of the work, and how to go on with it."""
    if isinstance(stop, JobInterruptedError):
        return f"What was done is kept, what was claimed is released. The rest is done by {stop.job.left_to}."
    return "What was claimed is released; the same command goes on where this stopped."
