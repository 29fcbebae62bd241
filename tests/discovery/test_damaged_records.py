"""Discovery beside a damaged record: nothing is made of its document, and everything of the others."""

import pytest

from resources.document_state.model import Presence
from resources.document_state.stored_record import decoded
from resources.records.record import Record, Write
from tests.discovery.pile import Pile


async def damaged(pile: Pile, key: str) -> Record:
    """Damage the record of a document, and nothing that stands beside it; gives it as it was."""
    [document_id] = pile.ids(key)
    seen = await pile.backend.read("document", document_id)
    write = Write(document_id, seen.value[:-20], seen.stamp, seen.due_at, seen.label, seen.open)
    assert (await pile.backend.compare_and_set("document", [write]))[0].written
    return seen


async def is_damaged(pile: Pile, key: str) -> bool:
    """Whether the record is as damaged as ever."""
    [seen] = (await pile.state.examine_many(pile.ids(key))).values()
    return seen.doc is None


@pytest.mark.parametrize("reconcile", [False, True])
async def test_the_others_are_discovered(pile: Pile, reconcile: bool) -> None:
    """New, changed and vanished objects are found; the damaged one is counted, and nothing is written for it."""
    pile.put("a.md", "b.md", "c.md")
    await pile.run()
    await damaged(pile, "a.md")
    pile.partitions.ids.clear()
    pile.put("a.md", "b.md", "d.md", text="other text")
    pile.remove("c.md")
    found = await pile.run(reconcile=reconcile)
    assert (found.new, found.changed, found.vanished) == (pile.ids("d.md"), pile.ids("b.md"), pile.ids("c.md"))
    assert (found.n_damaged, found.n_busy) == (1, 0)
    assert pile.partitions.ids == set(pile.ids("d.md"))
    assert await is_damaged(pile, "a.md")


async def test_a_plan_leaves_it_out(pile: Pile) -> None:
    """What nobody can read is called neither new nor vanished."""
    pile.put("a.md", "b.md")
    await pile.run()
    await damaged(pile, "a.md")
    pile.put("a.md", "b.md", text="other text")
    assert (await pile.discovery().preview())[0] == [("docs:b.md", "changed")]
    pile.remove("a.md")
    assert (await pile.discovery().preview())[0] == [("docs:b.md", "changed")]
    assert (await pile.run()).vanished == []


async def test_once_mended_it_is_as_any_other(pile: Pile) -> None:
    """However often it was left out before: what its object became meanwhile is found by the next discovery."""
    pile.put("a.md", "b.md")
    await pile.run()
    before = await damaged(pile, "a.md")
    pile.put("a.md", text="other text")
    for _ in range(3):
        assert (await pile.run()).n_damaged == 1
    [seen] = (await pile.state.examine_many(pile.ids("a.md"))).values()
    assert await pile.state.replace_faulty([(seen, decoded(before.value))]) == [True]
    found = await pile.run()
    assert (found.changed, found.n_damaged) == (pile.ids("a.md"), 0)
    await pile.check_snapshot()
    await pile.check_truth()


async def test_it_costs_no_look_at_every_record(pile: Pile, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that stays damaged is no reason to read all of them at each discovery, nor when its object is gone."""
    pile.put("a.md", "b.md")
    await pile.run()
    await damaged(pile, "a.md")
    pile.put("a.md", text="other text")
    await pile.run()
    monkeypatch.setattr(pile.state, "iter_statuses", None)
    assert (await pile.run()).n_damaged == 1
    pile.remove("a.md")
    for _ in range(2):
        assert (await pile.run()).n_damaged == 1
    assert await is_damaged(pile, "a.md")
    assert (await pile.doc("b.md")).presence is Presence.PRESENT
