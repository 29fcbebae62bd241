"""`ingest.toml` and the environment: what they may say, and what a mistake is told."""

from datetime import timedelta
from pathlib import Path

import pytest

from ingest_assets.settings import (
    ApiSettings,
    ApiTokenSettings,
    ChunkingSettings,
    ConfigurationError,
    DiscoverySettings,
    LimitSettings,
    RetrySettings,
    RunSettings,
    Settings,
    SourceSettings,
    StoreSettings,
    load_settings,
)
from ingest_assets.targets import open_targets
from resources.records.sqlite_backend import SqliteBackend
from resources.records.uri import open_backend

SECTIONS = {
    "[chunking]": ChunkingSettings,
    "[limits]": LimitSettings,
    "[retry]": RetrySettings,
    "[runs]": RunSettings,
    "[discovery]": DiscoverySettings,
    "[api]": ApiSettings,
    f'[[api.tokens]]\nhash = "sha256:{"0" * 64}"': ApiTokenSettings,
    '[[sources]]\nname = "a"\nuri = "a"': SourceSettings,
    '[[stores]]\nslug = "a"': StoreSettings,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(folder: Path, text: str, **environment: str) -> Settings:
    """Settings from a file in the folder."""
    (folder / "ingest.toml").write_text(text)
    return load_settings(environment)


def fault(folder: Path, text: str) -> str:
    """What a file is told that cannot be used."""
    with pytest.raises(ConfigurationError) as raised:
        load(folder, text)
    return str(raised.value)


class TestDefaults:
    def test_without_a_file(self, folder):
        """Without a file there is a source `samples`, a store `default`, and one data folder."""
        settings = load_settings({})
        assert {name: source.root for name, source in settings.open_sources().items()} == {
            "samples": folder / "samples"
        }
        assert [(store.slug, store.kind) for store in settings.stores] == [("default", "duckdb")]
        assert settings.data_path == folder / ".ingest"
        assert settings.state_uri == f"sqlite:///{folder}/.ingest/state.db"
        assert settings.dagster_home == folder / ".ingest" / "dagster"
        assert (settings.org_id, settings.extractor, settings.default_embedder) == ("default", "local", "wordllama")
        assert settings.config_file is None
        assert list(folder.iterdir()) == []

    def test_empty_file(self, folder):
        """An empty file says the same as none."""
        said = load(folder, "")
        assert said.config_file == folder / "ingest.toml"
        assert said.model_dump() == Settings(base=folder).model_dump()

    def test_made_of_the_settings(self, folder):
        """Limits, chunking, retry policy and lease are what the file says."""
        settings = load(
            folder,
            "[limits]\npages = 7\nfile_bytes = 9\n[chunking]\nsize = 500\noverlap = 50\n"
            "[retry]\nmax_attempts = 2\nfirst_pause_seconds = 1.5\n[runs]\nlease_seconds = 5\nparser_workers = 3\n",
        )
        assert (settings.parse_limits.pages, settings.limits.file_bytes) == (7, 9)
        assert (settings.parser_chunking.size, settings.parser_chunking.overlap) == (500, 50)
        assert settings.retry_policy.max_attempts == 2
        assert settings.retry_policy.first_pause == timedelta(seconds=1.5)
        assert settings.lease == timedelta(seconds=5)
        assert settings.parser_workers == 3
        assert load_settings({}).parser_workers >= 1


class TestPaths:
    def test_relative_paths_count_from_the_file(self, folder, monkeypatch):
        """Whatever the working directory, relative paths count from the configuration's folder."""
        (folder / "conf").mkdir()
        (folder / "conf" / "my.toml").write_text('data_dir = "data"\n[[sources]]\nname = "a"\nuri = "../docs"\n')
        monkeypatch.chdir("/")
        settings = load_settings({"INGEST_CONFIG": str(folder / "conf" / "my.toml")})
        assert settings.data_path == folder / "conf" / "data"
        assert settings.open_sources()["a"].root.resolve() == folder / "docs"
        assert settings.base == folder / "conf"

    def test_absolute_paths_stay(self, folder):
        """Absolute paths and file URIs are taken as they are, percent-encoding decoded."""
        settings = load(
            folder,
            'data_dir = "/var/data"\n[[sources]]\nname = "a"\nuri = "/docs"\n'
            '[[sources]]\nname = "b"\nuri = "file:///my%20docs"\n',
        )
        assert settings.data_path == Path("/var/data")
        assert [source.root for source in settings.open_sources().values()] == [Path("/docs"), Path("/my docs")]

    def test_home(self, folder, monkeypatch):
        """`~/` is the home folder wherever a path is written, so no folder called `~` comes to be; other names stay."""
        monkeypatch.setenv("HOME", str(folder / "home"))
        settings = load(
            folder,
            'data_dir = "~/data"\n[[sources]]\nname = "a"\nuri = "~/papers"\n[[sources]]\nname = "b"\nuri = "~papers"\n'
            '[[stores]]\nslug = "a"\nconfig = { path = "~/a.duckdb" }\n',
        )
        assert settings.data_path == folder / "home" / "data"
        assert [source.root for source in settings.open_sources().values()] == [
            folder / "home" / "papers",
            folder / "~papers",
        ]
        assert open_targets(settings, {})["a"].store._file.path == folder / "home" / "a.duckdb"

    @pytest.mark.parametrize("name", ["C#", "a b", "100%", "what?", "%41", "ü"])
    def test_folder_of_any_name(self, tmp_path, monkeypatch, name):
        """The default state file lies in the data folder, whatever the folders above are called."""
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        settings = load_settings({})
        backend = open_backend(settings.state_uri, settings.base)
        assert isinstance(backend, SqliteBackend)
        assert backend.path == tmp_path / name / ".ingest" / "state.db"

    def test_unknown_scheme_of_a_source(self, folder):
        """A source of a kind that nobody reads is told so, with what is known."""
        said = fault(folder, '[[sources]]\nname = "a"\nuri = "ftp://host/x"\n')
        assert "source 'a': unknown scheme 'ftp' in 'ftp://host/x'. Known: a path, file, s3." in said

    @pytest.mark.parametrize(
        ("uri", "said"),
        [
            ("s3://", "write s3://name/prefix"),
            ("s3://bucket/a?shards=3", "unknown option 'shards'. Known: endpoint_url, region, read_timeout, anonymous"),
            ("s3://bucket?anonymous=maybe", "anonymous is true or false"),
            ("s3://bucket?endpoint_url=here", "endpoint_url is an http or https URL"),
            ("s3://key:secret@bucket", "carries no credentials"),
            ("s3://bucket?endpoint_url=http://key:secret@host", "carries no credentials"),
            ("s3://bucket?aws_secret_access_key=secret", "unknown option"),
        ],
    )
    def test_bucket_that_is_told_wrongly(self, folder, uri, said):
        """What is wrong with a bucket's URI is told when the file is read, with the source and without secrets."""
        told = fault(folder, f'[[sources]]\nname = "a"\nuri = "{uri}"\n')
        assert "source 'a'" in told
        assert said in told
        assert "=secret" not in told
        assert ":secret" not in told

    def test_bucket(self, folder):
        """A bucket is a source; nothing is asked of it to know so."""
        [source] = load(folder, '[[sources]]\nname = "a"\nuri = "s3://b/c/d?region=x"\n').open_sources().values()
        assert (source.kind, source.name, source.org_id, source.uri) == ("s3", "a", "default", "s3://b/c/d?region=x")

    def test_artifacts(self, folder):
        """Artifacts are in the data folder unless the file or, above it, the environment says where."""
        assert load(folder, "").artifact_uri == f"sqlite:///{folder}/.ingest/artifacts/artifacts.db"
        assert load(folder, 'artifact_store = "s3://b/c"\n').artifact_uri == "s3://b/c"
        there = load(folder, 'artifact_store = "s3://b/c"\n', INGEST_ARTIFACT_STORE="sqlite:///x.db")
        assert there.artifact_uri == "sqlite:///x.db"
        assert "artifact_store: unknown artifact store scheme 'redis'" in fault(
            folder, 'artifact_store = "redis://x"\n'
        )


class TestMistakes:
    @pytest.mark.parametrize("section", SECTIONS)
    def test_unknown_key_in_a_section(self, folder, section):
        """An unknown key is named with its place, and every key that is known there is listed."""
        said = fault(folder, f"{section}\nunknown_key = 1\n")
        assert "unknown key" in said
        assert "unknown_key'" in said
        assert str(folder / "ingest.toml") in said
        for key in SECTIONS[section].model_fields:
            assert key in said

    @pytest.mark.parametrize("key", ["unknown", "base", "config_file", "data-dir"])
    def test_unknown_key_at_the_top(self, folder, key):
        """The same at the top; names that only the program uses are unknown there."""
        said = fault(folder, f'{key} = "x"\n')
        assert f"unknown key '{key}'" in said
        assert "Known: api, artifact_store, chunking, data_dir, default_embedder" in said
        assert "config_file" not in said.partition("Known:")[2]

    def test_unknown_section(self, folder):
        """A section nobody knows is an unknown key."""
        assert "unknown key 'chunks'" in fault(folder, "[chunks]\nsize = 3\n")

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ('[chunking]\nsize = "many"\n', "chunking.size"),
            ("[chunking]\nsize = 10\n", "chunking.size"),
            ("[runs]\ngroup = 0\n", "runs.group"),
            ('[runs]\nfail_run_on = "sometimes"\n', "runs.fail_run_on"),
            ("[retry]\nfactor = 0.5\n", "retry.factor"),
            ("[discovery]\nmax_vanished_share = 2\n", "discovery.max_vanished_share"),
            ("[discovery]\nreconcile_hours = 0\n", "discovery.reconcile_hours"),
            ("[discovery]\nreconcile_hours = inf\n", "discovery.reconcile_hours"),
            ('sources = "docs"\n', "sources"),
            ("[[sources]]\nname = 'a'\n", "sources.0.uri"),
            ("[[stores]]\nkind = 'duckdb'\n", "stores.0.slug"),
            ("org_id = 3\n", "org_id"),
            ("chunking = 3\n", "chunking"),
        ],
    )
    def test_wrong_values(self, folder, text, place):
        """A value of the wrong type or range is named with its place."""
        assert f" {place}: " in fault(folder, text)

    def test_misspelt_key(self, folder):
        """Of a misspelt key the spelling is told, not just that the right one is missing."""
        said = fault(folder, '[[sources]]\nname = "a"\nurl = "papers"\n')
        assert "unknown key 'sources.0.url'. Known: exclude, members, name, org_id, uri." in said

    @pytest.mark.parametrize("section", ["sources", "stores", "api.tokens"])
    def test_single_brackets(self, folder, section):
        """A table of which there can be several, written as if there was one, is told the brackets."""
        assert f"{section}: there can be several, so each is a table with two brackets: [[{section}]]." in fault(
            folder, f"[{section}]\nname = 'a'\n"
        )

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                "[[sources]]\nname = 'a'\nuri = 'x'\nexclude = '*.tmp'\n",
                "sources.0.exclude: this is a list, in brackets.",
            ),
            ("[api]\ntokens = ['abc']\n", "api.tokens.0: this is a table, with keys."),
            ("chunking = 3\n", "chunking: this is a table, with keys."),
            ("[[stores]]\nslug = 'a'\nconfig = 3\n", "stores.0.config: this is a table, with keys."),
            ("[[stores]]\nkind = 'duckdb'\n", "stores.0.slug: this key is missing."),
        ],
    )
    def test_shapes(self, folder, text, said):
        """What has the wrong shape is told in TOML's words, not in Python's."""
        assert fault(folder, text).endswith(said)

    def test_overlap_must_fit(self, folder):
        """Values that exclude each other are told as such."""
        said = fault(folder, "[chunking]\nsize = 800\noverlap = 900\n")
        assert said.endswith("0 <= overlap < size, not 800 and 900.")

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("[[sources]]\nname='a'\nuri='x'\n[[sources]]\nname='a'\nuri='y'\n", "sources"),
            ("[[stores]]\nslug='a'\n[[stores]]\nslug='a'\n", "stores"),
        ],
    )
    def test_names_are_unique(self, folder, text, kind):
        """Two sources or stores of one name are refused."""
        assert f"two [[{kind}]] are named a" in fault(folder, text)

    @pytest.mark.parametrize("name", ["", "A", "a b", "a/b", "../a", "-a", ".a", "ü", "a:b", "x" * 64, "a\\n"])
    def test_names_are_safe(self, folder, name):
        """Names become URIs, file names and asset keys, so only safe ones are names."""
        assert "is no name" in fault(folder, f'[[sources]]\nname="{name}"\nuri="x"\n')
        assert "is no name" in fault(folder, f'[[stores]]\nslug="{name}"\n')

    def test_bad_toml(self, folder):
        """A file that is no TOML is named with the line."""
        said = fault(folder, "data_dir = \n")
        assert str(folder / "ingest.toml") in said
        assert "no valid TOML" in said
        assert "line 1" in said

    def test_not_text(self, folder):
        """A file that is no text cannot be read, and says which."""
        (folder / "ingest.toml").write_bytes(b"\xff\xfe")
        with pytest.raises(ConfigurationError, match="cannot be read"):
            load_settings({})

    def test_named_file_is_missing(self, folder):
        """A file that the environment names must be there; the message names the variable."""
        with pytest.raises(ConfigurationError, match=r"nowhere\.toml does not exist. INGEST_CONFIG"):
            load_settings({"INGEST_CONFIG": "nowhere.toml"})

    def test_named_file_is_a_folder(self, folder):
        """A folder is no configuration."""
        with pytest.raises(ConfigurationError, match="cannot be read"):
            load_settings({"INGEST_CONFIG": str(folder)})


class TestEnvironment:
    def test_overrides_the_file(self, folder):
        """The environment has the last word on where things are and on the embedder."""
        settings = load(
            folder,
            'data_dir = "a"\ndefault_embedder = "wordllama"\ndocument_state_store = "sqlite:///x.db"\n',
            INGEST_DATA_DIR="b",
            DEFAULT_EMBEDDER="hash",
            INGEST_DOCUMENT_STATE_STORE="memory://",
        )
        assert (settings.data_path, settings.default_embedder, settings.state_uri) == (
            folder / "b",
            "hash",
            "memory://",
        )

    def test_empty_is_unset(self, folder):
        """An empty variable says nothing."""
        settings = load(folder, 'data_dir = "a"\n', INGEST_DATA_DIR="", DEFAULT_EMBEDDER="", INGEST_CONFIG="")
        assert (settings.data_path, settings.default_embedder) == (folder / "a", "wordllama")

    def test_other_variables_are_nothing(self, folder):
        """Only the documented variables count."""
        settings = load(folder, "", DATA_DIR="x", ORG_ID="y", INGEST_ORG_ID="z")
        assert (settings.org_id, settings.data_path) == ("default", folder / ".ingest")

    def test_configuration_is_named(self, folder, monkeypatch):
        """INGEST_CONFIG names the file; one in the working directory does not count then."""
        (folder / "other.toml").write_text('org_id = "other"\n')
        assert load(folder, 'org_id = "here"\n', INGEST_CONFIG="other.toml").org_id == "other"
        assert load_settings({}).org_id == "here"


def test_settings_do_not_change(folder):
    """Settings are read once and cannot be changed by accident."""
    settings = load_settings({})
    with pytest.raises(ValueError, match="frozen"):
        settings.org_id = "x"
