"""How clients of boto3 are made."""

import pytest

from resources.aws.client import open_client
from resources.aws.location import AwsLocation


@pytest.fixture
def elsewhere(aws_credentials, monkeypatch):
    """No region is set."""
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    return monkeypatch


@pytest.mark.parametrize(
    ("environment", "in_uri", "expected"),
    [
        ({"AWS_REGION": "eu-west-1"}, "", "eu-west-1"),
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, "", "eu-west-2"),
        ({"AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-3", "eu-west-3"),
    ],
)
def test_region(elsewhere, environment, in_uri, expected):
    """The URI's region, else boto3's own, else the one that containers set."""
    for name, value in environment.items():
        elsewhere.setenv(name, value)
    client = open_client(AwsLocation("dynamodb", "table", region=in_uri))
    assert client.meta.region_name == expected
