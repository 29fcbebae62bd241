"""Who starts a command may have closed what it prints to, as old daemons do."""

import subprocess
import sys

import pytest

_OPENS_A_FILE = """
import os
import sys
from ingest_assets.cli.output import complain, say
state = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
say("to people")
complain("to people")
os.write(1, b"by a library")
os.write(2, b"by a library")
"""


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_nothing_is_printed_into_a_file_of_ours(tmp_path, closed: str) -> None:
    """A file that is opened gets no number that is printed to, whichever were closed."""
    file = tmp_path / "state.db"
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", _OPENS_A_FILE, str(file)]
    subprocess.run(command, check=True)
    assert file.read_bytes() == b""
