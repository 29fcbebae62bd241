"""Stores as the configuration declares them, and as they are opened by their records."""

import msgspec
import pytest

from ingest_assets.components import Components
from ingest_assets.settings import ConfigurationError, Settings, StoreSettings, load_settings
from ingest_assets.targets import declared_stores, open_recorded, open_targets, renamed_to
from resources.document_state.store_registry import StoreRecord
from resources.records.memory_backend import MemoryBackend
from resources.store.store import StoreConfigError
from tests.document_state.documents import NOW

PASSWORD = "hunter2secret"


def settings(tmp_path, *stores: StoreSettings, default_embedder: str = "hash") -> Settings:
    """A configuration with these stores."""
    return Settings(stores=stores or (StoreSettings(slug="s"),), default_embedder=default_embedder, base=tmp_path)


def record(slug: str = "s", embedder: str = "hash", **changes) -> StoreRecord:
    """A recorded store."""
    values = {"name": slug, "kind": "duckdb", "config": {}, "is_default": True, "created_at": NOW}
    return StoreRecord(slug=slug, embedder=embedder, **(values | changes))


@pytest.mark.parametrize(
    ("stores", "default"),
    [
        ([StoreSettings(slug="a"), StoreSettings(slug="b")], "a"),
        ([StoreSettings(slug="a"), StoreSettings(slug="default")], "default"),
        ([StoreSettings(slug="default"), StoreSettings(slug="b", default=True)], "b"),
        ([], ""),
    ],
    ids=["the first", "the one of that name", "the one that is marked", "none"],
)
def test_which_store_is_the_default(stores, default) -> None:
    """The one marked so, else the one called `default`, else the first."""
    assert Settings(stores=stores).default_store == default


def test_two_defaults_are_refused(tmp_path) -> None:
    """Only one store can be meant when none is named."""
    file = tmp_path / "ingest.toml"
    file.write_text('[[stores]]\nslug = "a"\ndefault = true\n[[stores]]\nslug = "b"\ndefault = true\n')
    with pytest.raises(ConfigurationError, match="a, b: only one"):
        load_settings({"INGEST_CONFIG": str(file)})


async def test_a_new_default_embedder_changes_no_store(tmp_path) -> None:
    """The embedder of a store that names none is the default at its first start, whatever the default is later."""
    backend = MemoryBackend()
    await Components(settings(tmp_path), backend).register_stores()
    later = Components(settings(tmp_path, default_embedder="wordllama"), backend)
    await later.register_stores()
    assert (await later.target("s")).embedder.name == "hash"
    reader = Components(settings(tmp_path, default_embedder="wordllama"), backend)
    assert (await reader.target("s")).parts["embedder"] == "hash 1"


async def test_looking_records_nothing(tmp_path) -> None:
    """A command that looks shows a store as it would be recorded, and leaves recording to what works."""
    components = Components(settings(tmp_path), MemoryBackend())
    assert (await components.target("s")).embedder.name == "hash"
    assert await components.store_registry.all() == {}


def test_a_named_embedder_counts_at_once(tmp_path) -> None:
    """What the configuration names is meant, also while the data is another's: the store refuses and says why."""
    opened = open_targets(settings(tmp_path, StoreSettings(slug="s", embedder="wordllama")), {"s": record()})
    assert opened["s"].store.stamp.name == "wordllama"


async def test_an_empty_store_takes_a_named_embedder(tmp_path) -> None:
    """Without data there is nothing to mix, so the record follows the configuration at the next start."""
    backend = MemoryBackend()
    await Components(settings(tmp_path), backend).register_stores()
    named = Components(settings(tmp_path, StoreSettings(slug="s", embedder="wordllama")), backend)
    await named.register_stores()
    assert (await named.store_registry.all())["s"].embedder == "wordllama"


def test_a_password_is_refused_before_it_is_declared(tmp_path) -> None:
    """Options with a password never become a record, and the message does not repeat it."""
    url = f"postgresql://me:{PASSWORD}@host/db"
    with pytest.raises(StoreConfigError, match="'url'") as caught:
        declared_stores(settings(tmp_path, StoreSettings(slug="s", kind="pgvector", config={"url": url})))
    assert PASSWORD not in str(caught.value)


def test_a_store_is_found_by_its_record(tmp_path) -> None:
    """A store that is configured no more opens as it did: same file, same embedder."""
    declared = settings(tmp_path, StoreSettings(slug="s", config={"path": "x/s.duckdb"}))
    [store] = declared_stores(declared)
    found = open_recorded(settings(tmp_path, StoreSettings(slug="t")), record(config=store.config))
    assert found is not None
    assert found._file.path == tmp_path / "x" / "s.duckdb"


def test_a_record_that_withholds_options_finds_nothing(tmp_path) -> None:
    """Options of a kind that may hold secrets are not written down, so the record cannot open the store."""
    assert open_recorded(settings(tmp_path), msgspec.structs.replace(record(), config=None)) is None


@pytest.mark.parametrize("path", ["stores/a.duckdb", "./x/../stores/a.duckdb", "linked/a.duckdb"])
def test_two_stores_in_one_file_are_refused(tmp_path, path) -> None:
    """What is dropped from one would be gone from the other, however its path is written, and wherever it leads."""
    (tmp_path / "stores").mkdir()
    (tmp_path / "linked").symlink_to("stores")
    files = [
        StoreSettings(slug="a", config={"path": "stores/a.duckdb"}),
        StoreSettings(slug="b", config={"path": path}),
    ]
    for look in (declared_stores, lambda found: open_targets(found, {})):
        with pytest.raises(StoreConfigError, match=r"'b': its file .* is that of store 'a'"):
            look(settings(tmp_path, *files))


def test_a_store_under_a_new_slug(tmp_path) -> None:
    """A store that is configured no more, and whose file another one has now, is known as that one."""
    new = settings(tmp_path, StoreSettings(slug="new", config={"path": ".ingest/stores/old.duckdb"}))
    assert renamed_to(new, record("old")) == "new"
    assert renamed_to(new, record("older")) == renamed_to(new, record("old", kind="opensearch")) == ""
