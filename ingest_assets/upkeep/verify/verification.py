"""Looks at everything, and names what differs. Changes nothing; `repair.py` mends."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from ingest_assets.components import Components
from ingest_assets.targets import Target
from ingest_assets.upkeep.verify.difference import Difference, Differences
from ingest_assets.upkeep.verify.examining import Examiner, ids_of
from resources.document_state.workers import WorkerWatch
from resources.store.store import StoreError

if TYPE_CHECKING:
    import dagster as dg


class Verification:
    """Compares records, artifacts, stores and partitions.

    Attributes:
        examiner: compares records, artifacts and stores, without Dagster.
    """

    def __init__(
        self, components: Components, targets: Mapping[str, Target], instance: "dg.DagsterInstance | None"
    ) -> None:
        """Take what is needed.

        Args:
            components: where everything is.
            targets: the stores to look at, by slug.
            instance: where partitions are; None: Dagster knows of nothing yet, and is not looked at.
        """
        self._components = components
        self._stores = {slug: target.store for slug, target in targets.items()}
        self._unreadable: dict[str, str] = {}
        self._instance = instance
        self.examiner = Examiner(components.state, components.artifacts, self._stores)

    async def look(self, chosen: Sequence[str] | None, advance: Callable[[int], None] = lambda _: None) -> Differences:
        """Every difference of all documents, or of the chosen ones; changes nothing.

        A store that cannot be read is named, and the rest is compared without it.
        """
        result = await self._examine(chosen, advance)
        if found := await self.compare_partitions(chosen):
            again = {difference.key for difference in await self.compare_partitions(ids_of(found))}
            result.found += [difference for difference in found if difference.key in again]
        result.found.sort()
        return result

    async def _examine(self, chosen: Sequence[str] | None, advance: Callable[[int], None]) -> Differences:
        while True:
            try:
                result = await (self.examiner.all(advance) if chosen is None else self.examiner.some(chosen))
            except StoreError as error:
                if self._stores.pop(error.store, None) is None:
                    raise
                self._unreadable[error.store] = str(error)  # and all once more: what was compared must go together
            else:
                result.unreadable = dict(self._unreadable)
                return result

    async def compare_partitions(self, chosen: Collection[str] | None) -> list[Difference]:
        """How Dagster's partitions differ from the records; in nothing, where Dagster is not looked at."""
        if self._instance is None:
            return []
        from ingest_assets.upkeep.verify.partitions import compare_partitions

        components = self._components
        watch = WorkerWatch(components.backend, components.settings.lease)
        return await compare_partitions(components.state, watch, self._instance, self._stores, chosen)
