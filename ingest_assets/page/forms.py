"""What a form of a page sends."""

from collections.abc import Mapping, Sequence
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Depends, Request

from ingest_assets.api.problems import Problem

_MOST_FIELDS = 100_100


class Form:
    """The fields of a form, each with any number of values."""

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self._fields = fields

    def one(self, name: str) -> str:
        """The last value of a field; "" if it was not sent."""
        return self._fields.get(name, [""])[-1]

    def all(self, name: str) -> tuple[str, ...]:
        """Its values, each once."""
        return tuple(dict.fromkeys(self._fields.get(name, ())))


async def _sent(request: Request) -> Form:
    try:
        text = (await request.body()).decode()
        return Form(parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise Problem(422, "invalid", "The form cannot be read.", "Go back and send it again.") from error


Sent = Annotated[Form, Depends(_sent)]
