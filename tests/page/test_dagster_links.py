"""What Dagster shows leads to the page, where it is said how people reach it."""

from pathlib import Path

import dagster as dg
import pytest

from ingest_assets.assets import build_document_assets, build_source_assets
from ingest_assets.settings import ConfigurationError, Settings, load_settings
from tests.end_to_end.project import Project

PAGE = "https://ingest.example.org"
CONFIG = '[[sources]]\nname = "docs"\nuri = "docs"\n[api]\npublic_url = "https://ingest.example.org/"\n'


def test_documents_runs_and_jobs_link_to_their_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each materialization has a link to its document, a job's run one to the job, also where it says what failed."""
    project = Project(tmp_path, 'default_embedder = "hash"\n' + CONFIG)
    project.write("a.md", "Some words.")
    project.write("empty.md", "")
    job = project.json("run", code=1)
    home = Path(project.run("dagster-home").stdout.strip())
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        [run] = instance.get_runs()
        assert run.tags["ingest/page"] == f"{PAGE}/jobs/{job['job_id']}"
        events = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        links = {e.dagster_event.partition: e.asset_materialization.metadata["page"] for e in events}
        assert links == {key: dg.MetadataValue.url(f"{PAGE}/documents/{key}") for key in links}
        assert len(links) == 1
        [failed] = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        said = failed.dagster_event.step_failure_data.user_failure_data.metadata
        assert said["page"] == dg.MetadataValue.url(f"{PAGE}/jobs/{job['job_id']}")


def test_assets_link_to_the_page(tmp_path: Path) -> None:
    """Sources, extraction and stores have a link; without `public_url` none of them has."""
    for settings, paths in ((_settings(tmp_path), ["/?source=docs", "/", "/stores"]), (Settings(), [])):
        specs = [*build_source_assets(settings), *build_document_assets(settings).specs]
        links = [spec.metadata["page"].url for spec in specs if "page" in spec.metadata]
        assert sorted(links) == sorted(PAGE + path for path in paths)


def test_an_address_is_one_of_a_web_page(tmp_path: Path) -> None:
    """What a browser would not open as a page is refused when the configuration is read, with what it must be."""
    for name in ("public_url", "dagster_url"):
        (tmp_path / "ingest.toml").write_text(f'[api]\n{name} = "javascript:alert(1)"\n')
        with pytest.raises(ConfigurationError, match="begins with http"):
            load_settings({"INGEST_CONFIG": str(tmp_path / "ingest.toml")})


def _settings(folder: Path) -> Settings:
    (folder / "ingest.toml").write_text(CONFIG)
    return load_settings({"INGEST_CONFIG": str(folder / "ingest.toml")})
