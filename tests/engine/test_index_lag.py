"""An index that lags behind, as those of DynamoDB do: a hint that is old costs a look and nothing else."""

import pytest

from resources.records.memory_backend import MemoryBackend
from tests.engine.workshop import Workshop


class LaggingBackend(MemoryBackend):
    """Its index of due records answers as it stood when it was first asked, for the next few calls."""

    n_old_answers = 6

    def __init__(self):
        super().__init__()
        self._old = None

    async def _list_due(self, kind, now, limit, after):
        if self._old is None:
            self._old = await super()._list_due(kind, now, 10_000, None)
        if self.n_old_answers:
            self.n_old_answers -= 1
            return self._old[:limit]
        return await super()._list_due(kind, now, limit, after)


@pytest.fixture
def shop(tmp_path, pool):
    pool.n_parsed = 0
    return Workshop(tmp_path, LaggingBackend(), pool)


@pytest.mark.parametrize("group", [3, 10])
async def test_nothing_is_done_or_told_twice(shop, group):
    """Documents the index still lists after they are done are neither done nor reported again by the same run."""
    shop.group = group
    for i in range(10):
        shop.put(f"{i}.md", f"text {i}")
    await shop.discover()
    reporter = await shop.pull()
    assert sorted(report.result.filename for report in reporter.reports) == [f"{i}.md" for i in range(10)]
    assert shop.pool.n_parsed == 10


async def test_the_next_run_only_looks(shop):
    """A run whose index lists what another has done reports it as needing nothing, and claims nothing."""
    for i in range(5):
        shop.put(f"{i}.md", f"text {i}")
    await shop.discover()
    await shop.pull()
    before = {key: doc.version for key, doc in (await shop.state.get_many(shop.held())).items()}
    await shop.pull()
    assert shop.pool.n_parsed == 5
    assert {key: doc.version for key, doc in (await shop.state.get_many(shop.held())).items()} == before
