"""A PostgreSQL, and a store in a schema no other test has."""

import pytest

from tests.store.pgvector_server import running_server


@pytest.fixture(scope="session")
def server():
    with running_server() as server:
        yield server


@pytest.fixture
def schema(tmp_path):
    """A schema of the test's own, in a name that must be quoted."""
    return f"Test {tmp_path.parent.name} {tmp_path.name}"[-60:]


@pytest.fixture
def store(server, schema):
    return server.store(schema, lock_timeout=10)


@pytest.fixture
def raw(server, schema):
    """Ask the store's tables: `{chunks}` and its like stand for their names."""

    def rows(query):
        for table in ("meta", "fences", "documents", "entries", "chunks"):
            query = query.replace(f"{{{table}}}", f'"{schema}"."test_{table}"')
        return server.rows(query)

    return rows
