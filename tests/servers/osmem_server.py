"""osmem-server: the wire protocol of OpenSearch, in memory, by a program inside a wheel.

It knows mappings, bulk writes, sequence numbers, aliases, points in time and deleting by query, and refuses what it
does not know: `knn` queries and scripts with vectors.
"""

import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.server_process import ServerProcess


@contextmanager
def osmem_server(folder: Path) -> Iterator[str]:
    """A server on loopback, from its first answer on; its address."""
    program = pytest.importorskip("osmem_server", reason="osmem-server's wheel is not installed").resolve_binary()
    with ServerProcess([program, "-no-stdin-watch", "-no-ja"], folder) as process:
        process.wait_until(lambda: urllib.request.urlopen(_address(process)).close())
        yield _address(process)


def _address(process: ServerProcess) -> str:
    """Where it says that it listens.

    Raises:
        ConnectionError: it has not said so yet.
    """
    said = re.search(r"http://127\.0\.0\.1:\d+", process.log())
    if said is None:
        raise ConnectionError("no address yet")
    return said[0]
