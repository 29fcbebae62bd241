"""The time, in one zone: records of several machines are compared."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The current time, aware and in UTC."""
    return datetime.now(UTC)
