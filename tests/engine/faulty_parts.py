"""Stores and extractors that are real and have a fault."""

from resources.extractor.none_extractor import NoneExtractor
from resources.store.duckdb.duckdb_store import DuckDBStore
from resources.store.store import StoreUnavailableError


class Unavailable(DuckDBStore):
    """A real store whose server does not answer."""

    calls = 0

    def write(self, builds):
        """See Store."""
        self.calls += 1
        raise StoreUnavailableError(self.slug, "no answer")

    def remove(self, removals):
        """See Store."""
        self.calls += 1
        raise StoreUnavailableError(self.slug, "no answer")


class ChokesOn(DuckDBStore):
    """A real store with a fault of its own at one document, or whenever it shall remove."""

    culprit = ""

    def write(self, builds):
        """See Store."""
        if any(self.culprit in build.source_uri for build in builds):
            raise ZeroDivisionError("a fault of the store")
        return super().write(builds)

    def remove(self, removals):
        """See Store."""
        raise ZeroDivisionError("a fault of the store")


class ChokingExtractor(NoneExtractor):
    """An extractor with a fault of its own at one text."""

    async def extract(self, document_id, chunks):
        """See Extractor."""
        if "choke" in chunks[0].text:
            raise ZeroDivisionError("a fault of the extractor")
        return await super().extract(document_id, chunks)
