"""The journal of paid results that belongs to an artifact store: in the same place, by the same URI."""

from pathlib import Path

from resources.artifact_store.open_artifact_store import parse_artifact_store_uri
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.aws.location import AwsLocation


def open_journal(uri: str, base: Path) -> PaidResultJournal:
    """Open the journal of the artifact store a URI names; nothing is asked of it before it is used.

    Beside a file `artifacts.db` it is `artifacts-paid.db`, in a bucket what is below `paid/`.

    Args:
        uri: see `open_artifact_store`.
        base: where a relative path counts from.

    Raises:
        ArtifactStoreUriError: no store has this scheme, or the URI has a part its scheme does not know.
    """
    place = parse_artifact_store_uri(uri, base)
    if isinstance(place, AwsLocation):
        from resources.artifact_store.paid_results.s3_journal import S3Journal

        return S3Journal(place)
    from resources.artifact_store.paid_results.sqlite_journal import SqliteJournal

    return SqliteJournal(beside_artifacts(place))


def beside_artifacts(artifacts: Path) -> Path:
    """Where the journal is that belongs to a file of artifacts."""
    return artifacts.with_name(f"{artifacts.stem}-paid{artifacts.suffix}")
