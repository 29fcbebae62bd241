"""Two stores of a kind, as a project has them, and a look into them around the program."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from resources.store.opensearch.address import OpenSearchConfig
from resources.store.opensearch.opensearch_store import OpenSearchStore
from tests.end_to_end.project import Project
from tests.servers.osmem_server import osmem_server
from tests.store.opensearch_server import STAMP, OpenSearchServer
from tests.store.pgvector_server import running_server
from tests.store.raw_rows import DuckDBRows, OpenSearchRows, PgvectorRows, RawRows

KINDS = ("duckdb", "pgvector", "opensearch")
SLUGS = ("a", "b")


class TwoStores:
    """Two stores of one kind.

    Attributes:
        tables: what ingest.toml says of them.
        rows_of: the rows of one, by project and slug.
    """

    def __init__(self, kind: str, config: str, rows_of: Callable[[Project, str], RawRows]) -> None:
        self.tables = "".join(f'[[stores]]\nslug = "{slug}"\nkind = "{kind}"\n{config}\n' for slug in SLUGS)
        self.rows_of = rows_of


def in_duckdb() -> TwoStores:
    """Two files in the project's folder."""
    return TwoStores("duckdb", "", lambda project, slug: DuckDBRows(project.root / f".ingest/stores/{slug}.duckdb"))


@contextmanager
def in_postgresql() -> Iterator[TwoStores]:
    """Two stores on a server of their own."""
    with running_server() as server:

        def rows_of(_: Project, slug: str) -> RawRows:
            def ask(query: str) -> list[tuple[Any, ...]]:
                for table in ("meta", "fences", "documents", "entries", "chunks"):
                    query = query.replace(f"{{{table}}}", f'"two_stores"."{slug}_{table}"')
                return server.rows(query)

            return PgvectorRows(ask)

        yield TwoStores("pgvector", f'config = {{ url = "{server.url}", schema = "two_stores" }}', rows_of)


@contextmanager
def in_opensearch(folder: Path) -> Iterator[TwoStores]:
    """Two indexes on a server of their own, which keeps what it needs in a folder."""
    with osmem_server(folder) as url:

        def rows_of(_: Project, slug: str) -> RawRows:
            config = OpenSearchConfig(url=url, search="client")
            return OpenSearchRows(OpenSearchServer(url, None), OpenSearchStore(slug, STAMP, config))

        yield TwoStores("opensearch", f'config = {{ url = "{url}", search = "client" }}', rows_of)
