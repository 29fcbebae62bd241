"""Making a pgvector store's tables, and what they say they are. Called while nobody else makes tables."""

from resources.embedder.embedder import EmbedderStamp
from resources.store.pgvector import queries
from resources.store.pgvector.database import Session
from resources.store.pgvector.tables import Tables
from resources.store.store import StoreConfigError, StoreCorruptError
from resources.store.store_rules import check_format

# A row does not fit on a page with a longer vector and the longest ids in it.
_LARGEST_DIMENSION_IN_ROWS = 1_536


def create_tables(store: str, session: Session, tables: Tables) -> None:
    """Make what is missing, bring up what is of an older version, and hold the tables alone.

    Raises:
        StoreConfigError: the database cannot hold every text.
    """
    if not session.rows(queries.HAS_TABLES, {"schema": tables.schema, "meta": tables.meta})[0][0]:
        [(encoding,)] = session.rows(queries.SELECT_ENCODING)
        if encoding != "UTF8":
            raise StoreConfigError(
                store, f"the database's encoding is {encoding}, which cannot hold every text. Use one in UTF8."
            )
        if not session.rows(queries.HAS_SCHEMA, {"schema": tables.schema})[0][0]:
            session.rows(queries.CREATE_SCHEMA)
        session.rows(queries.CREATE_EXTENSION)
        session.rows(queries.FIND_EXTENSION)
        for statement in queries.CREATE_TABLES:
            session.rows(statement)
        _create_chunks(session, tables.dimension)
        session.rows(queries.INSERT_META, {"format_version": queries.FORMAT_VERSION})
    session.rows(queries.FIND_EXTENSION)
    session.rows(queries.HOLD_TABLES_ALONE)
    if not is_up_to_date(session):
        for statement in queries.ADD_CHECKSUMS:
            session.rows(statement)
        session.rows(queries.UPDATE_VERSION, {"format_version": queries.FORMAT_VERSION})


def is_up_to_date(session: Session) -> bool:
    """Whether the tables have all that is written."""
    return all(row[0] for row in session.rows(queries.HAS_CHECKSUMS))


def recorded_embedder(store: str, session: Session) -> EmbedderStamp | None:
    """Whose vectors the store holds, None before the first write.

    Raises:
        StoreTooNewError: a newer program made the tables.
    """
    found = session.rows(queries.SELECT_META)
    if len(found) != 1:
        raise StoreCorruptError(store, "its tables do not say what they are. Drop it and build it again.")
    version, name, embedder_version, dimension = found[0]
    check_format(store, "its database", version, queries.FORMAT_VERSION)
    return EmbedderStamp(name, embedder_version, dimension) if name else None


def adopt_embedder(session: Session, stamp: EmbedderStamp) -> None:
    """Make an empty store the embedder's."""
    session.rows(queries.DROP_CHUNKS)
    _create_chunks(session, stamp.dimension)
    session.rows(queries.UPDATE_META, {"name": stamp.name, "version": stamp.version, "dimension": stamp.dimension})


def _create_chunks(session: Session, dimension: int) -> None:
    session.rows(queries.CREATE_CHUNKS)
    if dimension <= _LARGEST_DIMENSION_IN_ROWS:
        session.rows(queries.KEEP_VECTORS_IN_ROWS)
    session.rows(queries.INDEX_CHUNKS)
