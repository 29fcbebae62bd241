"""How clients of AWS are made."""

import pytest

from resources.aws.client import new_session, open_client
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
    """The URI's region, else botocore's own, else the one that containers set."""
    for name, value in environment.items():
        elsewhere.setenv(name, value)
    client = open_client(AwsLocation("dynamodb", "table", region=in_uri))
    assert client.meta.region_name == expected


@pytest.mark.parametrize(("given", "expected"), [(0, 7), (60, 60)])
def test_how_long_it_waits(aws_credentials, given, expected):
    """As long as the location says, else as long as its user does."""
    client = open_client(AwsLocation("s3", "bucket", region="eu-west-1", read_timeout=given), read_seconds=7)
    assert client.meta.config.read_timeout == expected


def test_what_is_shared(aws_credentials, monkeypatch, tmp_path):
    """Clients read the services' descriptions once, from where they are to be, and share no credentials."""
    first = new_session()
    assert first.get_credentials().access_key != "ANOTHER"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ANOTHER")
    second = new_session()
    assert second.get_component("data_loader") is first.get_component("data_loader")
    assert second.get_credentials().access_key == "ANOTHER"
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    assert str(tmp_path) in new_session().get_component("data_loader").search_paths
