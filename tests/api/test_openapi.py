"""The API does what its own OpenAPI document promises, whatever it is asked."""

from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ingest_assets.api.app import build_app
from ingest_assets.api.security import Rules
from ingest_assets.api.tokens import Tokens
from ingest_assets.settings import Settings
from tests.api.served import Served
from tests.end_to_end.project import Project

_DOCUMENT = build_app(Settings(), Rules(Tokens([]), frozenset(), 1, 1)).openapi()
_CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
schema = schemathesis.openapi.from_dict(_DOCUMENT)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A project without documents, served: whatever is asked of it, there is no work to be begun."""
    with Served(Project(tmp_path_factory.mktemp("empty"))) as server:
        yield server


@schema.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_every_answer_is_as_declared(case: schemathesis.Case, served: Served, empty: Served) -> None:
    """No request, however strange, is a server error, and each answer has a status, type and shape as declared."""
    server = served if case.method == "GET" or case.path == "/api/search" else empty
    case.call_and_validate(
        base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, checks=_CHECKS, timeout=30
    )


def test_the_document_is_served(served: Served) -> None:
    """What is served is that document, and the page for people names each of its routes."""
    assert served.client.get("/openapi.json").json() == httpx.Response(200, json=_DOCUMENT).json()
    page = served.client.get("/docs").text
    assert all(path in page for path in _DOCUMENT["paths"])


@pytest.mark.parametrize("path", sorted(_DOCUMENT["paths"]))
def test_every_operation_says_what_it_does(path: str) -> None:
    """Each operation of the document has a description and declares its errors as problems."""
    for operation in _DOCUMENT["paths"][path].values():
        assert operation["description"]
        assert "application/problem+json" in operation["responses"]["4XX"]["content"]
