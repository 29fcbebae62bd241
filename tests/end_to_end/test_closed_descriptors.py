"""Who starts a command may have closed what it prints to, as old daemons do, or stop reading, as `head` does."""

import os
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


_TELLS_MUCH = """
import sys
from ingest_assets.cli.output import complain, print_json, print_table, say
for tell in (say, complain, print_json, lambda text: print_table(["text"], [[text]])):
    tell(sys.argv[1] * 100_000)
"""


@pytest.mark.parametrize("left", ["stdout", "stderr"])
def test_who_stops_reading_stops_nothing(left: str) -> None:
    """The rest is told to nobody, without a word on the other stream, and the command ends as it would have."""
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, left: writer}
    ended = subprocess.run([sys.executable, "-c", _TELLS_MUCH, "x"], check=False, **streams)
    os.close(writer)
    assert ended.returncode == 0
    assert set(ended.stderr or b"" if left == "stdout" else ended.stdout) <= set(b'x"text \n')
