"""Which source a URI names.

| URI | source |
|---|---|
| `path`, `file:///path` | a folder; a relative path counts from the configuration's folder, `~/` from the user's |
| `s3://bucket/prefix?endpoint_url=…&region=…&read_timeout=…&anonymous=true` | the objects of a bucket |

Credentials come by boto3's own ways, never in a URI.
"""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from resources.aws.location import COMMON_OPTIONS, parse_location
from resources.document_source.document_source import DocumentSource
from resources.document_source.local_source import LocalSource
from resources.document_source.own_files import NO_OWN_FILES, OwnFiles
from resources.document_source.s3_source import S3Source
from resources.local_path import local_path

_S3_OPTIONS = (*COMMON_OPTIONS, "anonymous")


def open_source(
    name: str, uri: str, base: Path, org_id: str, exclude: Sequence[str], own: OwnFiles = NO_OWN_FILES
) -> DocumentSource:
    """The source a URI names. Nothing is asked of it before it is used.

    Args:
        name: what it is called.
        uri: where it is.
        base: where a relative path counts from.
        org_id: whose documents it holds.
        exclude: names to leave out.
        own: what this program keeps, which no folder gives.

    Raises:
        ValueError: the URI is of a kind we cannot read, or has a part its kind does not know.
    """
    scheme, found, _ = uri.partition("://")
    if not found:
        return LocalSource(name, local_path(base, uri), org_id, exclude, own)
    if scheme == "file":
        return LocalSource(name, Path(unquote(urlsplit(uri).path)), org_id, exclude, own)
    if scheme == "s3":
        location = parse_location(uri, takes_prefix=True, options=_S3_OPTIONS)
        return S3Source(name, location, org_id, exclude)
    raise ValueError(f"unknown scheme '{scheme}' in '{uri}'. Known: a path, file, s3.")
