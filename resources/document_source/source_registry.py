"""Folders that became sources by being named on the command line, remembered as records."""

import re
from pathlib import Path

import msgspec

from resources.records.backend import RecordBackend
from resources.records.decoding import decoded
from resources.records.record import Record, Write

KIND = "source"


class RememberedSource(msgspec.Struct, frozen=True):
    """A folder with the name it is known by."""

    name: str
    folder: str
    org_id: str

    @property
    def root(self) -> Path:
        """The folder."""
        return Path(self.folder)


class SourceRegistry:
    """Remembered sources as records of a backend."""

    def __init__(self, backend: RecordBackend) -> None:
        self._backend = backend

    async def all(self) -> list[RememberedSource]:
        """Every remembered source, by name.

        Raises:
            BackendCorruptError: one is damaged. Nobody goes on without it: its folder, named again, would become a
                second source of the same documents.
        """
        return [self._decoded(record) async for record in self._backend.list_records(KIND)]

    def _decoded(self, record: Record) -> RememberedSource:
        remedy = f"`ingest forget {record.key}`, then `ingest run` with its folder: its documents stay as they are."
        return decoded(self._backend.uri, KIND, record, RememberedSource, remedy)

    async def remember(self, folder: Path, org_id: str, taken: set[str]) -> RememberedSource:
        """Make a folder a source named after it; the same folder keeps its name.

        Args:
            folder: an absolute path.
            org_id: whose documents it holds.
            taken: names that declared sources have.
        """
        for known in await self.all():
            if known.folder == str(folder):
                return known
        wanted = re.sub(r"[^a-z0-9._-]+", "-", folder.name.lower()).strip("-._")[:48] or "folder"
        number = 1
        while True:
            name = wanted if number == 1 else f"{wanted}-{number}"
            source = RememberedSource(name, str(folder), org_id)
            if name not in taken:
                write = Write(name, msgspec.json.encode(source), None)
                if (await self._backend.compare_and_set(KIND, [write]))[0].written:
                    return source
            number += 1

    async def forget(self, name: str) -> bool:
        """Remove a remembered source; False if there is none of that name."""
        found = await self._backend.read(KIND, name)
        if found is None:
            return False
        return (await self._backend.compare_and_set(KIND, [Write(name, None, found.stamp)]))[0].written
