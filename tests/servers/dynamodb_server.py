"""DynamoDB Local: Amazon's own DynamoDB for one machine, in memory."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.clients import dynamodb_client
from tests.servers.dynamodb_package import dynamodb_jar
from tests.servers.server_process import ServerProcess

LAUNCHER = Path(__file__).with_name("LoopbackDynamoDB.java")
OPTIONS = ("-inMemory", "-disableTelemetry")


def java() -> str:
    """The program; skips the test where it, or the compiler that its launcher needs, is missing."""
    found = {program: shutil.which(program) for program in ("java", "javac")}
    for program, path in found.items():
        if path is None:
            pytest.skip(f"{program} is missing: DynamoDB Local needs a Java development kit, 17 or newer")
    return str(found["java"])


@contextmanager
def dynamodb_server(folder: Path) -> Iterator[str]:
    """DynamoDB Local on loopback only, from its first answer on; its address."""
    command = [java()]
    jar = dynamodb_jar()
    libraries = jar.parent / "DynamoDBLocal_lib"
    command += [f"-Djava.library.path={libraries}", f"-Djava.io.tmpdir={folder}"]
    command += ["-cp", f"{jar}:{libraries}/*", str(LAUNCHER), *OPTIONS]
    with ServerProcess(command, folder) as process:
        process.wait_until(lambda: dynamodb_client(_address(process)).list_tables())
        yield _address(process)


def _address(process: ServerProcess) -> str:
    """Where the launcher says that it listens.

    Raises:
        ConnectionError: It has not said so yet.
    """
    said = re.search(r"Listening on port (\d+)", process.log())
    if said is None:
        raise ConnectionError("no port yet")
    return f"http://127.0.0.1:{said[1]}"
