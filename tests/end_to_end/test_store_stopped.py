"""A store's server is stopped in mid-run: a real PostgreSQL, and the command line of a person."""

import json
import time
from collections import Counter

import pytest

from resources.document_state.model import LinkState
from tests.end_to_end.test_selection import Piles
from tests.store.pgvector_server import running_server

pytestmark = pytest.mark.servers
N = 30


def configure(project: Piles, url: str) -> None:
    """A store on this machine, and one in the server."""
    project.configure(
        'extractor = "counting:Counting"\ndefault_embedder = "hash"\n[[sources]]\nname = "docs"\nuri = "docs"\n'
        f'[[stores]]\nslug = "default"\n[[stores]]\nslug = "remote"\nkind = "pgvector"\nconfig = {{ url = "{url}" }}\n'
        "[runs]\nparser_workers = 1\ngroup = 5\n"
    )


def test_a_server_is_stopped_in_mid_run(tmp_path) -> None:
    """Its links fail with a reason, the other store is complete; started again, what failed there is mended alone."""
    project = Piles(tmp_path)
    for i in range(N):
        project.write(f"{i}.md", f"# Title {i}\n\nText number {i} about harbours.")
    (project.root / "pause").write_text("0.05")
    with running_server() as server:
        configure(project, server.url)
        run = project.start("run", "--json")
        while project.stores().get("remote", {}).get("Ingested", 0) < 5:
            assert run.poll() is None
            time.sleep(0.02)
        server.stop()
        said, _ = run.communicate(timeout=120)
        assert run.returncode == 1
        remote = project.links("remote")
        states = Counter(link.state for link in remote)
        assert states.keys() == {LinkState.INGESTED, LinkState.FAILED}
        assert project.stores()["default"] == {"Ingested": N}
        failed = [link for link in remote if link.state is LinkState.FAILED]
        assert {str(link.reason) for link in failed} == {"store_unavailable"}
        assert all(link.error_message for link in failed)
        assert json.loads(said)["n_failed"] == len(failed)
        before, n = project.links("default"), project.n_extracted()
        kept = [link for link in remote if link.state is LinkState.INGESTED]
        server.start()
        mended = project.json("run", "--store", "remote", "--failed")
        assert (mended["n_requested"], mended["n_succeeded"]) == (len(failed), len(failed))
        assert project.stores() == {"default": {"Ingested": N}, "remote": {"Ingested": N}}
        assert (project.links("default"), project.n_extracted()) == (before, n)
        assert all(link in project.links("remote") for link in kept)
        assert len(project.json("search", "harbours", "--store", "remote", "-k", "100")) == N
