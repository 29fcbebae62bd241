"""Clients of the servers under test, with the one pair of credentials that every server here accepts."""

from typing import Any

# DynamoDB Local takes letters and digits only.
ACCESS_KEY = "AKIATESTS"
SECRET_KEY = "teststeststests"
REGION = "us-east-1"
PATIENCE = 60  # seconds; a server of ours does not get the processor where other tests' many processes begin


def patient(uri: str) -> str:
    """The URI of a state or store on a server under test whose answers are waited for long."""
    return f"{uri}{'&' if '?' in uri else '?'}read_timeout={PATIENCE}"


def s3_client(url: str, attempts: int = 1, secret: str = SECRET_KEY) -> Any:
    """A client of the S3 at `url` that sends a request at most `attempts` times."""
    return _client("s3", url, attempts, secret)


def dynamodb_client(url: str, attempts: int = 1) -> Any:
    """A client of the DynamoDB at `url` that sends a request at most `attempts` times."""
    return _client("dynamodb", url, attempts, SECRET_KEY)


def _client(service: str, url: str, attempts: int, secret: str) -> Any:
    """Path-style addresses, since no name server knows the buckets of a loopback host."""
    from botocore.config import Config

    from resources.aws.client import new_session

    config = Config(
        retries={"mode": "standard", "total_max_attempts": attempts},
        s3={"addressing_style": "path"},
        max_pool_connections=32,
        connect_timeout=5,
        read_timeout=30,
        proxies={},
    )
    return new_session().create_client(
        service,
        endpoint_url=url,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=secret,
        region_name=REGION,
        config=config,
    )
