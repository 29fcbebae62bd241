"""Moments as whole microseconds since 1970, as backends index them: they compare exactly and sort as time does."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Count the microseconds of an aware moment."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The moment, in UTC."""
    return _EPOCH + micros * _MICROSECOND
