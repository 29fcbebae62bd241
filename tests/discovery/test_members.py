"""What lies in a container is new, changes, vanishes and stays away as the container does."""

import zipfile

import pytest

from ingest_assets.parsing import ConfinedUnpacker, ParseLimits
from resources.clock import utc_now
from resources.document_source.document_ids import document_id
from resources.document_source.local_source import LocalSource
from resources.document_source.member_source import MemberSource
from resources.document_source.member_tables import MemberTables
from resources.document_source.member_tree import TreeLimits
from resources.document_state import removals
from resources.document_state.model import Presence
from tests.discovery.pile import Pile


@pytest.fixture(scope="module")
def unpacker():
    confined = ConfinedUnpacker(ParseLimits())
    yield confined
    confined.close()


@pytest.fixture
def opened(pile: Pile, unpacker) -> Pile:
    """A folder whose archives are opened."""
    folder = LocalSource("docs", pile.root, "default")
    tables = MemberTables(pile.artifacts, "docs", "default", "")
    pile.source = MemberSource(folder, unpacker, tables, TreeLimits(3, 10_000, 10**8), 10**8, ())
    return pile


def pack(pile: Pile, name: str, **texts: str) -> None:
    """Write an archive."""
    with zipfile.ZipFile(pile.root / name, "w") as file:
        for member, text in texts.items():
            file.writestr(f"{member}.md", text)


async def presences(pile: Pile) -> dict[str, Presence]:
    """What is known, by key."""
    return {doc.source_uri.removeprefix("docs:"): doc.presence async for doc in pile.state.iter_statuses()}


def ids(*keys: str) -> list[str]:
    """The ids of members of a.zip."""
    return sorted(document_id("default", f"docs:a.zip!/{key}.md") for key in keys)


async def test_with_their_container(opened: Pile) -> None:
    """Members are documents, each changes by itself, and all vanish with their container."""
    pack(opened, "a.zip", x="1", y="1")
    assert len((await opened.run()).new) == 3
    pack(opened, "a.zip", x="2", y="1", z="1")
    found = await opened.run()
    assert (found.new, len(found.changed)) == (ids("z"), 2)  # z; x and the archive itself
    pack(opened, "a.zip", x="2")
    assert sorted((await opened.run()).vanished) == ids("y", "z")
    opened.remove("a.zip")
    assert len((await opened.run()).vanished) == 2


async def test_a_damaged_container_loses_nothing(opened: Pile) -> None:
    """While a container cannot be opened its members stay as they are; others are not held up."""
    pack(opened, "a.zip", x="1", y="1")
    opened.put("b.md")
    await opened.run()
    opened.put("a.zip", text="PK\x03\x04 cut off")
    opened.remove("b.md")
    found = await opened.run()
    assert (len(found.vanished), found.incomplete) == (1, "")
    assert (await presences(opened))["a.zip!/x.md"] is Presence.PRESENT
    pack(opened, "a.zip", x="1")
    assert (await opened.run()).vanished == ids("y")


async def test_a_part_is_its_container_with_all_in_it(opened: Pile) -> None:
    """Listing just one container finds what vanished in it, and looks at no other."""
    for name in ("a.zip", "b.zip"):
        pack(opened, name, x="1", y="1")
    await opened.run()
    for name in ("a.zip", "b.zip"):
        pack(opened, name, x="1")
    assert (await opened.run(prefix=b"a.zip")).vanished == ids("y")


async def test_a_large_archive_that_goes_is_believed(opened: Pile) -> None:
    """What a listing may have lost is counted in objects: one archive of many members is one."""
    pack(opened, "a.zip", **{f"m{number}": "1" for number in range(60)})
    opened.put("b.md")
    await opened.run()
    opened.remove("a.zip")
    found = await opened.run()
    assert (len(found.vanished), found.vanished_refused) == (61, 0)


async def test_what_is_put_into_a_deleted_container_stays_away(opened: Pile) -> None:
    """Who had a container deleted wants nothing of it, also not what is put into it later."""
    pack(opened, "a.zip", x="1")
    await opened.run()
    docs = [doc async for doc in opened.state.iter_statuses()]
    await opened.state.set_many([(removals.deletion_requested(doc, utc_now()), doc) for doc in docs])
    pack(opened, "a.zip", x="1", y="1")
    assert (await opened.run()).new == []
    assert sorted(await presences(opened)) == ["a.zip", "a.zip!/x.md"]
