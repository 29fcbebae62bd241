"""Documents on the S3 backend. Many processes at one bucket are in the two test_processes.py."""

import uuid

import pytest

from resources.records.backend import RecordBackend
from resources.records.s3.s3_backend import S3Backend
from tests.document_state.contract import DocumentStateStoreContract
from tests.records.s3_store import location_of


class TestDocumentsOnMoto(DocumentStateStoreContract):
    @pytest.fixture
    def backend(self, s3) -> RecordBackend:
        """A backend on a new bucket."""
        return s3


@pytest.mark.servers
class TestDocumentsOnSeaweedFS(DocumentStateStoreContract):
    @pytest.fixture
    async def backend(self, seaweedfs, crowded_bucket, aws_credentials) -> RecordBackend:
        """A backend on a new prefix."""
        opened = S3Backend(location_of(crowded_bucket, seaweedfs.url, f"{uuid.uuid4().hex}/"))
        yield opened
        await opened.close()
