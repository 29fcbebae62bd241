"""Damages a share of everything a project keeps, at random, around the program."""

import json
import random
import sqlite3
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from tests.end_to_end.project import Project
from tests.store.raw_rows import RawRow, RawRows, Table

EXTRACTOR = """
import pathlib
from resources.extractor.none_extractor import NoneExtractor
from resources.artifact_store.artifact import Entry, entry_id


class Counted(NoneExtractor):
    name = "counted"
    version = "1"

    async def extract(self, document_id, chunks):
        with pathlib.Path(__file__).with_name("calls").open("a") as calls:
            calls.write(document_id + "\\n")
        return tuple(
            Entry(entry_id(document_id, c.chunk_id, "statement", c.text), "statement", c.text, c.chunk_id)
            for c in chunks
        )
"""
LINK_STATES = ("Ingested", "Stale", "Failed")


def damage_rows(rows: RawRows, rng: random.Random) -> set[str]:
    """Change or remove 1% of the rows of each table, and 1% of the vectors; gives the documents they were of."""
    known = {row.document_id for row in rows.all(Table.DOCUMENTS)}
    touched = set()
    for table in Table:
        for _ in range(_share(rows.all(table))):
            row = _any(rows, table, known - touched, rng)
            if rng.random() < 0.3:
                rows.remove(row)
            else:
                rows.change(row, rng.choice([field for field in rows.fields(table) if field != rows.vector_field]))
            touched.add(row.document_id)
    for _ in range(_share(rows.all(Table.CHUNKS))):
        row = _any(rows, Table.CHUNKS, known - touched, rng)
        rows.change(row, rows.vector_field)
        touched.add(row.document_id)
    return touched


def _share(things: Sequence[object]) -> int:
    return max(1, round(len(things) / 100))


def _any(rows: RawRows, table: Table, document_ids: AbstractSet[str], rng: random.Random) -> RawRow:
    """A row of one of some documents. Looked for anew each time: a change may have moved the others."""
    return rng.choice([row for row in rows.all(table) if row.document_id in document_ids])


def damage_records(project: Project, rng: random.Random) -> set[str]:
    """Change bytes of 1% of the records, remove 1%, and falsify a link in 1%; gives the documents they were of."""
    with sqlite3.connect(project.root / ".ingest/state.db") as state:
        where = "kind = 'document' AND key = ?"
        keys = [key for (key,) in state.execute("SELECT key FROM records WHERE kind = 'document' ORDER BY key")]
        rng.shuffle(keys)
        n = max(1, len(keys) // 100)
        for number, key in enumerate(keys[: 4 * n]):
            (value,) = state.execute(f"SELECT value FROM records WHERE {where}", (key,)).fetchone()
            if number % 4 == 0:
                changed = bytearray(value)
                for _ in range(rng.randint(1, 4)):
                    changed[rng.randrange(len(changed))] ^= rng.randint(1, 255)
                new = bytes(changed)
            elif number % 4 == 1:
                state.execute(f"DELETE FROM records WHERE {where}", (key,))
                continue
            elif number % 4 == 2:
                doc = json.loads(value)
                link = doc["links"][rng.choice(sorted(doc["links"]))]
                link["state"] = rng.choice([other for other in LINK_STATES if other != link["state"]])
                new = json.dumps(doc).encode()
            else:
                doc = json.loads(value)
                del doc["links"][rng.choice(sorted(doc["links"]))]
                new = json.dumps(doc).encode()
            state.execute(f"UPDATE records SET value = ? WHERE {where}", (new, key))
    return set(keys[: 4 * n])
