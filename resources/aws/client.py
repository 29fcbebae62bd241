"""Clients of AWS, as all of us use them. A client may be used by many threads at once.

They are botocore's, on which boto3 stands and which is all of it that we need. Credentials, region and retries come by
its own ways; only how long a silent server is waited for is ours.
"""

import functools
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
        read_seconds: how long a silent server is waited for where the location does not say; None: as is usual for the
            service.

    Raises:
        botocore.exceptions.BotoCoreError: no region is known, or the like.
    """
    import botocore
    from botocore.config import Config

    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=location.read_timeout or read_seconds or _READ_SECONDS[location.scheme],
        max_pool_connections=CONNECTIONS,
        # Checksums as trailers of a chunked body are news that many servers of the protocol have not heard.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        # Buckets as host names want a name service of their own.
        s3={"addressing_style": "path"} if location.endpoint_url else None,
        signature_version=botocore.UNSIGNED if location.anonymous else None,
    )
    session = new_session()
    return session.create_client(
        location.scheme,
        endpoint_url=location.endpoint_url or None,
        region_name=location.region or region_of(session),
        config=config,
    )


def new_session() -> Any:
    """A session of botocore, for one client: sessions are not safe to share, unlike what they know of the services."""
    import botocore.session

    session = botocore.session.get_session()
    session.register_component("data_loader", _service_descriptions(session.get_config_variable("data_path")))
    return session


def region_of(session: Any) -> str | None:
    """The region that profile or environment name, if they name one."""
    # botocore itself does not look at AWS_REGION, which containers and other tools of Amazon set.
    return session.get_config_variable("region") or os.environ.get("AWS_REGION")


@functools.cache
def _service_descriptions(data_path: str | None) -> Any:
    """What botocore knows of the services, read once a process: four fifths of the 0.15 s a client took (measured)."""
    from botocore.loaders import create_loader

    return create_loader(data_path)
