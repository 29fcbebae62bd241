"""What a URI of Amazon's services says, and what a wrong one is told."""

import pytest

from resources.aws.location import AwsLocation, parse_location

ENDPOINT = "http://127.0.0.1:8333"


@pytest.mark.parametrize(
    ("uri", "location"),
    [
        ("s3://bucket", AwsLocation("s3", "bucket")),
        ("s3://bucket/", AwsLocation("s3", "bucket")),
        ("s3://bucket/a/b", AwsLocation("s3", "bucket", "a/b/")),
        ("s3://bucket/a/b/", AwsLocation("s3", "bucket", "a/b/")),
        ("s3://bucket/a%20b", AwsLocation("s3", "bucket", "a b/")),
        (f"s3://bucket/a?endpoint_url={ENDPOINT}&region=r", AwsLocation("s3", "bucket", "a/", ENDPOINT, "r")),
        (f"dynamodb://table?endpoint_url={ENDPOINT}", AwsLocation("dynamodb", "table", "", ENDPOINT)),
        ("dynamodb://table?read_timeout=60", AwsLocation("dynamodb", "table", read_timeout=60)),
    ],
)
def test_parts(uri, location):
    """Bucket or table, prefix, and options; a slash at the end says nothing."""
    assert parse_location(uri, takes_prefix=uri.startswith("s3")) == location


@pytest.mark.parametrize("uri", ["s3://bucket", f"s3://bucket/a/b?endpoint_url={ENDPOINT}&region=r", "dynamodb://t"])
def test_shown_as_it_was_written(uri):
    """The URI that is shown names the same place."""
    location = parse_location(uri, takes_prefix=True)
    assert location.uri == uri
    assert parse_location(location.uri, takes_prefix=True) == location


def test_patience_is_no_part_of_the_place():
    """Who waits longer means the same place: copying a state to itself is refused, and going on with a copy is not."""
    hasty, patient = (parse_location(f"dynamodb://t{query}", takes_prefix=False) for query in ("", "?read_timeout=60"))
    assert patient.uri == hasty.uri


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("s3://", "write s3://name/prefix"),
        ("s3:///prefix", "write s3://name/prefix"),
        ("dynamodb://table/more", "write dynamodb://name"),
        ("s3://bucket#part", "write s3://name/prefix"),
        ("s3://bucket?endpoint=x", "unknown option 'endpoint'. Known: endpoint_url, region"),
        ("s3://bucket?region=a&region=b", "an option twice"),
        ("s3://bucket?endpoint_url=127.0.0.1:9", "http or https"),
        ("s3://bucket?endpoint_url=http://", "of a host"),
        ("s3://bucket?endpoint_url=http://a%20b", "of a host"),
        ("s3://bucket?anonymous=true", "unknown option 'anonymous'"),
        ("s3://bucket?read_timeout=0", "read_timeout is a whole number of seconds, 1 to 999"),
        ("s3://bucket?read_timeout=1.5", "read_timeout is a whole number"),
        ("s3://bucket?read_timeout=inf", "read_timeout is a whole number"),
    ],
)
def test_wrong_uris_are_told(uri, said):
    """A missing, unknown or doubled part is an error that lists the known."""
    with pytest.raises(ValueError, match=said.replace("?", r"\?")):
        parse_location(uri, takes_prefix=uri.startswith("s3"))


@pytest.mark.parametrize("uri", ["s3://AKIAKEY:SECRET@bucket/x", "s3://b?endpoint_url=http://AKIAKEY:SECRET@host"])
def test_credentials_are_refused_and_not_repeated(uri):
    """A URI is shown, so it carries no credentials, and the refusal does not show them either."""
    with pytest.raises(ValueError, match="credentials") as raised:
        parse_location(uri, takes_prefix=True)
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    "uri", ["s3://b?secret_key=SECRET", "s3://?key=SECRET", "s3://b#SECRET", "s3://b?endpoint_url=SECRET"]
)
def test_what_may_be_a_secret_is_not_repeated(uri):
    """Options and fragments of a URI that is refused are not shown: somebody may have put a key there."""
    with pytest.raises(ValueError, match="s3://") as raised:
        parse_location(uri, takes_prefix=True)
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(("text", "anonymous"), [("true", True), ("1", True), ("false", False), ("TRUE", True)])
def test_anonymous_where_it_is_known(text, anonymous):
    """Who allows the option may be asked for unsigned requests."""
    uri = f"s3://bucket?anonymous={text}"
    assert parse_location(uri, takes_prefix=True, options=("anonymous",)).anonymous is anonymous
