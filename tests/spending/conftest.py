"""Most of the time of a test that opens clients goes into botocore's descriptions: they are read once."""

from tests.records.conftest import descriptions_read_once

__all__ = ["descriptions_read_once"]
