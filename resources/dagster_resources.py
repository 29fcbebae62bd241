"""What the resources are to Dagster: configuration that opens the real thing. Nothing else here knows Dagster."""

from pathlib import Path

import dagster as dg

from resources.artifact_store.artifact_store import ArtifactStore
from resources.artifact_store.open_artifact_store import open_artifact_store
from resources.records.backend import RecordBackend
from resources.records.uri import open_backend


class DocumentStateStoreResource(dg.ConfigurableResource[RecordBackend]):
    """Where the truth about the documents is.

    `uri` names the backend (see `resources/records/uri.py`); a relative path in it counts from `base`.
    """

    uri: str
    base: str

    def open(self) -> RecordBackend:
        """The backend, ready to use."""
        return open_backend(self.uri, Path(self.base))


class ArtifactStoreResource(dg.ConfigurableResource[ArtifactStore]):
    """Where extraction keeps what it produced.

    `uri` names the store (see `resources/artifact_store/open_artifact_store.py`); a relative path in it counts from
    `base`.
    """

    uri: str
    base: str

    def open(self) -> ArtifactStore:
        """The artifact store, ready to use."""
        return open_artifact_store(self.uri, Path(self.base))
