"""Documents and many processes on the S3 backend."""

import uuid

import pytest

from resources.records.backend import RecordBackend
from resources.records.s3.s3_backend import S3Backend
from tests.document_state.contract import DocumentStateStoreContract
from tests.document_state.processes_contract import ManyWorkersContract
from tests.records.processes_contract import ManyProcessesContract
from tests.records.s3_store import location_of
from tests.servers.clients import s3_client


@pytest.fixture(scope="module")
def crowded_bucket(seaweedfs) -> str:
    """A bucket for all of these tests on SeaweedFS, each on a prefix of its own."""
    s3_client(seaweedfs.url).create_bucket(Bucket="documents")
    return "documents"


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


class TestProcessesOnMoto(ManyProcessesContract, ManyWorkersContract):
    INCREMENTS = 25

    @pytest.fixture
    def uri(self, raw, moto_url, bucket_name) -> str:
        """A new bucket."""
        return location_of(bucket_name, moto_url).uri


@pytest.mark.servers
class TestProcessesOnSeaweedFS(ManyProcessesContract, ManyWorkersContract):
    INCREMENTS = 10

    @pytest.fixture
    def uri(self, seaweedfs, crowded_bucket, aws_credentials) -> str:
        """A new prefix."""
        return location_of(crowded_bucket, seaweedfs.url, f"{uuid.uuid4().hex}/").uri
