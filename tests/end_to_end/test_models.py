"""A project whose extractor is a language model: through the installed command line to a scripted server."""

from collections import Counter
from pathlib import Path

import pytest

from resources.artifact_store.open_artifact_store import open_artifact_store
from tests.end_to_end.dying import Point
from tests.end_to_end.project import Project
from tests.servers import scripted_model as scripted
from tests.servers.fixtures import ENVIRONMENT
from tests.servers.model_server import ModelServer
from tests.servers.scripted_model import Step

CANARY = "sk-canary-4f0d1c7e9a2b"
SOURCE = '[[sources]]\nname = "docs"\nuri = "docs"\n'
OPENAI, BEDROCK = "openai:gpt-4o-mini", "bedrock:anthropic.claude-3-haiku-20240307-v1:0"
both = pytest.mark.parametrize("name", [OPENAI, BEDROCK], ids=["openai", "bedrock"])


@pytest.fixture
def paid(tmp_path: Path, model: ModelServer) -> Project:
    """A project of five documents."""
    project = Project(tmp_path, f'extractor = "{OPENAI}"\n{SOURCE}')
    project.environment = {
        **ENVIRONMENT,
        **model.environment(),
        "OPENAI_API_KEY": CANARY,
        "AWS_SECRET_ACCESS_KEY": CANARY,
        "AWS_SESSION_TOKEN": CANARY,
    }
    for number in range(5):
        project.write(f"{number}.md", f"Grace Hopper wrote compiler number {number}. Ada Lovelace wrote notes.\n")
    return project


def entries(project: Project) -> Counter[str]:
    """How many entries of each kind there are."""
    store = open_artifact_store(f"sqlite:///{project.root}/.ingest/artifacts/artifacts.db", project.root)
    keys = [project.json("show", f"docs/{number}.md")["artifact"] for number in range(5)]
    artifacts = store.get_many(keys).values()
    return Counter(entry.kind for artifact in artifacts for entry in artifact.entries)


def everything(project: Project) -> bytes:
    """All the project has kept."""
    return b"".join(path.read_bytes() for path in (project.root / ".ingest").rglob("*") if path.is_file())


@both
def test_entries_of_a_model(paid: Project, model: ModelServer, name: str) -> None:
    """One call a document, all of its kinds of entries, and nothing asked again by a second run."""
    paid.configure(f'extractor = "{name}"\n{SOURCE}')
    assert paid.json("run")["n_succeeded"] == 5
    assert entries(paid) == {"statement": 10, "entity": 10, "relation": 5, "topic": 5}
    assert len(model.calls) == 5
    assert paid.json("run")["n_unchanged"] == 5
    assert len(model.calls) == 5


def test_documents_share_the_calls_in_flight(paid: Project, model: ModelServer) -> None:
    """A group's documents are asked about at once, each by its own call."""
    model.script(Step(seconds=1))
    assert paid.json("run")["n_succeeded"] == 5
    assert model.most_in_flight == 5


def test_one_bad_answer_fails_one_document(paid: Project, model: ModelServer) -> None:
    """The others succeed; the reason says what to do."""
    model.script(Step(scripted.MALFORMED, contains="compiler number 3"))
    outcome = paid.json("run", code=1)
    assert (outcome["n_succeeded"], outcome["n_failed"]) == (4, 1)
    assert paid.json("show", "docs/3.md")["extraction"]["reason"] == "model_malformed"
    model.script()
    assert paid.json("run", "--mode", "retry-failed")["n_succeeded"] == 1


@both
@pytest.mark.parametrize("kind", [scripted.ANSWER, scripted.WRONG_KEY])
def test_keys_are_nowhere(paid: Project, model: ModelServer, name: str, kind: str) -> None:
    """Not in what a run prints or keeps: state, artifacts, Dagster's events and logs; not even if it fails."""
    paid.configure(f'extractor = "{name}"\n{SOURCE}')
    model.script(Step(kind))
    done = paid.run("run")
    assert done.returncode == (0 if kind == scripted.ANSWER else 1), done.stderr
    assert CANARY not in done.stdout + done.stderr
    assert CANARY.encode() not in everything(paid)


def test_keys_are_nowhere_after_a_blocked_job_and_a_sweep(paid: Project, model: ModelServer) -> None:
    """Nor in what a job that a ceiling held back, a run that was killed in mid-call and its sweep print and keep."""
    paid.configure(f'extractor = "{OPENAI}"\n{SOURCE}[spend]\nper_day_usd = 0.0001\n')
    told = [paid.run("run")]
    assert told[0].returncode == 3
    paid.configure(f'extractor = "{OPENAI}"\n{SOURCE}')
    printed = paid.dies(Point("after", 3, "resources.extractor.llm.calling", "Caller.execute"), "run")
    paid.write("late.md", "This one came late.")
    model.script(Step(scripted.WRONG_KEY, contains="came late"))
    told += [paid.run("run", "--mode", "resume"), paid.run("spend"), paid.run("jobs"), paid.run("why", "docs/late.md")]
    assert told[1].returncode == 1
    assert CANARY not in printed + "".join(done.stdout + done.stderr for done in told)
    assert CANARY.encode() not in everything(paid)


def test_what_needs_a_person_is_not_tried_again_by_itself(paid: Project, model: ModelServer) -> None:
    """A wrong key, an unknown model, no access: each has its reason, costs nothing, and waits until it is set right."""
    modes = ["incremental", "retry-failed", "retry-failed"]
    for mode, kind in zip(modes, [scripted.WRONG_KEY, scripted.NO_MODEL, scripted.NO_ACCESS], strict=True):
        model.script(Step(kind))
        failed = paid.json("run", "--mode", mode, code=1)
        assert Counter(result["reason"] for result in failed["results"]) == {"model_access": 5}
    n_calls = len(model.calls)
    assert n_calls <= 15
    assert paid.json("run")["n_requested"] == 0
    assert len(model.calls) == n_calls
    [totals] = [models[OPENAI] for models in paid.json("spend")["days"].values()]
    assert (totals.get("micro_usd", 0), model.n_paid) == (0, 0)
    model.script()
    assert paid.json("run", "--mode", "retry-failed")["n_succeeded"] == 5


def test_no_key_is_told_at_once(paid: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key nothing is listed, and what is missing is said; looking needs none."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name)
        del paid.environment[name]
    for request in (["run"], ["run", "--failed"], ["run", "--continue", "0" * 32]):
        refused = paid.run(*request)
        assert refused.returncode == 2
        assert "OPENAI_API_KEY" in refused.stderr
    assert paid.json("status")["documents"] == 0


def test_faults_of_one_document_are_its_own(paid: Project, model: ModelServer) -> None:
    """Too long, filtered, unreadable twice: each its reason, asked as often as helps; throttled is asked again."""
    faults = {
        scripted.TOO_LONG: ("context_too_long", 1),
        scripted.FILTERED: ("model_refused", 1),
        scripted.BLOCKED: ("model_refused", 1),
        scripted.MALFORMED: ("model_malformed", 2),
    }
    steps = [Step(kind, contains=f"compiler number {number}") for number, kind in enumerate(faults)]
    model.script(*steps, Step(scripted.THROTTLE, contains="compiler number 4", times=1))
    outcome = paid.json("run", code=1)
    reasons = {result["filename"]: result["reason"] for result in outcome["results"] if result.get("reason")}
    assert reasons == {f"{number}.md": reason for number, (reason, _) in enumerate(faults.values())}
    kinds = Counter(call.kind for call in model.calls)
    assert kinds == {**{kind: n for kind, (_, n) in faults.items()}, scripted.THROTTLE: 1, scripted.ANSWER: 1}
    model.forget()
    assert paid.json("run")["n_requested"] == 0
    assert model.calls == []


def test_another_model_is_stale_and_costs_nothing(paid: Project, model: ModelServer) -> None:
    """The part that differs is named; nothing is asked before somebody wants it."""
    paid.json("run")
    model.forget()
    paid.configure(f'extractor = "openai:gpt-4o"\n{SOURCE}')
    assert paid.json("run")["n_unchanged"] == 5
    why = paid.run("why", "docs/0.md")
    assert "model" in why.stdout
    assert model.calls == []


def test_an_unpriced_model_is_refused_before_the_first_call(paid: Project, model: ModelServer) -> None:
    """The message says what to write; with a price, or leave to be free, it runs."""
    paid.configure(f'extractor = "openai:mine"\n{SOURCE}')
    done = paid.run("run")
    assert (done.returncode, model.calls) == (2, [])
    assert '[prices."openai:mine"]' in done.stderr
    paid.configure(f'extractor = "openai:mine"\n{SOURCE}[prices."openai:mine"]\ninput = 0.1\noutput = 0.4\n')
    assert paid.json("run")["n_succeeded"] == 5
