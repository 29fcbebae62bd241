"""Where something is: a bucket and prefix, or a table, with the few options a URI may carry.

    s3://bucket/prefix?endpoint_url=http://127.0.0.1:8333&region=eu-central-1
    dynamodb://table?endpoint_url=http://127.0.0.1:8000&read_timeout=60

What a URI leaves out comes by boto3's own ways: environment, profile, instance role. Credentials never stand in a URI,
since URIs are shown.
"""

import re
from collections.abc import Collection
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import msgspec

COMMON_OPTIONS = ("endpoint_url", "region", "read_timeout")
_ENDPOINT = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[\w./-]*)?")
_SECONDS = re.compile(r"0*[1-9][0-9]{0,2}")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


class AwsLocation(msgspec.Struct, frozen=True):
    """A parsed URI.

    Attributes:
        scheme: `s3` or `dynamodb`.
        name: the bucket or table.
        prefix: what keys begin with; "" or ending in `/`.
        endpoint_url: a server that speaks the protocol; "": Amazon's.
        region: "" is boto3's.
        anonymous: requests are not signed.
        read_timeout: how long a silent server is waited for, seconds; 0: as long as is usual for what it is used for.
    """

    scheme: str
    name: str
    prefix: str = ""
    endpoint_url: str = ""
    region: str = ""
    anonymous: bool = False
    read_timeout: float = 0

    @property
    def uri(self) -> str:
        """The URI that names the place, as it is shown and compared: how long one waits for it is no part of that."""
        given = {"endpoint_url": self.endpoint_url, "region": self.region, "anonymous": "true" * self.anonymous}
        query = urlencode({name: value for name, value in given.items() if value}, safe=":/")
        path = f"/{self.prefix.rstrip('/')}" if self.prefix else ""
        return f"{self.scheme}://{self.name}{path}" + (f"?{query}" if query else "")


def parse_location(uri: str, *, takes_prefix: bool, options: Collection[str] = COMMON_OPTIONS) -> AwsLocation:
    """Take a URI apart.

    Args:
        uri: `scheme://name/prefix?option=value`.
        takes_prefix: whether a path may follow the name.
        options: which options it may carry.

    Raises:
        ValueError: a part is missing, unknown or doubled; the message lists the known.
    """
    parts = urlsplit(uri)
    form = f"{parts.scheme}://name{'/prefix' * takes_prefix}"
    shown = (
        f"{parts.scheme}://{parts.netloc}{parts.path}"  # an option or fragment may be a secret put in the wrong place
    )
    given = parse_qsl(parts.query, keep_blank_values=True)
    chosen = dict(given)
    endpoint_url = chosen.get("endpoint_url", "")
    if "@" in parts.netloc or "@" in endpoint_url:
        raise ValueError(
            f"{parts.scheme}://…: a URI carries no credentials. Give them to boto3: AWS_PROFILE or the like."
        )
    if not parts.netloc or parts.fragment or (not takes_prefix and parts.path not in {"", "/"}):
        raise ValueError(f"'{shown}': write {form}, options behind '?'.")
    unknown = sorted(set(chosen) - set(options))
    if unknown or len(chosen) < len(given):
        named = f"unknown option '{unknown[0]}'" if unknown else "an option twice"
        raise ValueError(f"'{shown}': {named}. Known: {', '.join(options)}.")
    if endpoint_url and not _ENDPOINT.fullmatch(endpoint_url):
        raise ValueError(f"'{shown}': endpoint_url is an http or https URL of a host, as http://127.0.0.1:8333.")
    anonymous = chosen.get("anonymous", "false").lower()
    if anonymous not in _TRUTH:
        raise ValueError(f"'{shown}': anonymous is true or false.")
    read_timeout = chosen.get("read_timeout", "")
    if read_timeout and not _SECONDS.fullmatch(read_timeout):
        raise ValueError(f"'{shown}': read_timeout is a whole number of seconds, 1 to 999.")
    prefix = unquote(parts.path).strip("/")
    return AwsLocation(
        parts.scheme, parts.netloc, f"{prefix}/" if prefix else "", endpoint_url, chosen.get("region", ""),
        _TRUTH[anonymous], int(read_timeout or 0),
    )  # fmt: skip
