"""The time, in one zone: records of several machines are compared."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The current time, aware and in UTC."""
    return datetime.now(UTC)


def to_the_second(moment: datetime) -> str:
    """A moment for people, in UTC; whoever shows it says that it is."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
