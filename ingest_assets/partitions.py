"""Each document is a partition of every asset that is made of documents."""

import time
from collections.abc import Sequence

import dagster as dg
from dagster._core.storage.event_log import SqlEventLogStorage
from dagster._core.storage.event_log.schema import DynamicPartitionsTable
from sqlalchemy.exc import IntegrityError

from ingest_assets.dagster_databases import told_of_its_databases

documents = dg.DynamicPartitionsDefinition(name="documents")

# Larger requests hold the database's write lock longer and are no faster a key (SQLite also ends at 32,766 variables).
_CHUNK = 5_000
_TRIES = 5
_FEW = 5


class DagsterPartitions:
    """The set of documents Dagster knows."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance

    @told_of_its_databases()
    def add(self, document_ids: Sequence[str]) -> None:
        """Make documents partitions; those that are already stay."""
        for start in range(0, len(document_ids), _CHUNK):
            self._add_chunk(document_ids[start : start + _CHUNK])

    @told_of_its_databases()
    def remove(self, document_ids: Sequence[str]) -> None:
        """Take documents out of the partition set; their history stays."""
        storage = self._instance.event_log_storage
        if len(document_ids) < _FEW or not isinstance(storage, SqlEventLogStorage):
            for document_id in document_ids:
                self._instance.delete_dynamic_partition(documents.name or "", document_id)
            return
        # Dagster's public call is a transaction a key: 20,000 took 97 s.
        with storage.index_connection() as connection:
            connection.execute(
                DynamicPartitionsTable.delete().where(
                    DynamicPartitionsTable.c.partitions_def_name == documents.name,
                    DynamicPartitionsTable.c.partition.in_(document_ids),
                )
            )

    def _add_chunk(self, document_ids: Sequence[str]) -> None:
        # Dagster reads which keys exist and inserts the others: two processes that add the same ones collide.
        for tried in range(_TRIES):
            try:
                self._instance.add_dynamic_partitions(documents.name or "", list(document_ids))
            except IntegrityError:
                if tried == _TRIES - 1:
                    raise
                time.sleep(0.05 * (tried + 1))
            else:
                return
