"""Clients of boto3, as all of us use them. A client may be used by many threads at once.

Credentials, region and retries come by boto3's own ways; only how long a silent server is waited for is ours.
"""

import os
from typing import Any

from resources.aws.location import AwsLocation

CONNECTIONS = 32
_CONNECT_SECONDS = 5
# A record is answered in milliseconds, and a heartbeat must get through a second time within its lease.
_READ_SECONDS = {"s3": 30, "dynamodb": 5}


def open_client(location: AwsLocation, *, read_seconds: float | None = None) -> Any:
    """A client for the service a location's scheme names.

    Args:
        location: where.
        read_seconds: how long a silent server is waited for, if not as long as is usual for the service.

    Raises:
        botocore.exceptions.BotoCoreError: no region is known, or the like.
    """
    import boto3
    import botocore
    from botocore.config import Config

    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=read_seconds or _READ_SECONDS[location.scheme],
        max_pool_connections=CONNECTIONS,
        # Checksums as trailers of a chunked body are news that many servers of the protocol have not heard.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        # Buckets as host names want a name service of their own.
        s3={"addressing_style": "path"} if location.endpoint_url else None,
        signature_version=botocore.UNSIGNED if location.anonymous else None,
    )
    session = boto3.session.Session()
    return session.client(
        location.scheme,
        endpoint_url=location.endpoint_url or None,
        # boto3 itself does not look at AWS_REGION, which containers and other tools of Amazon set.
        region_name=location.region or session.region_name or os.environ.get("AWS_REGION"),
        config=config,
    )
