"""Many one-document jobs race for a day's ceiling: exactly what can be paid is, and never more, nor perhaps more."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.end_to_end.dying import Point
from tests.end_to_end.paid_project import MODEL, config, on_servers, paid_project, spent
from tests.end_to_end.project import Project
from tests.servers.model_server import ModelServer
from tests.servers.sampling import full_size, sampled
from tests.servers.scripted_model import Step

# Each call costs half of its worst case: who looks at what is reserved alone sees room for half of what can be paid.
_MOST_TOKENS = 256
_WORST_MICRO_USD = 400 * _MOST_TOKENS
_MICRO_USD = _WORST_MICRO_USD // 2
_PRICE = f'[prices."{MODEL}"]\ninput = 0\noutput = 400\n'
_MID_CALL = Point("after", 1, "resources.extractor.llm.calling", "Caller.execute")


class Race(NamedTuple):
    """A job for each document, so many at once; `n_affordable` could be paid if the first `n_killed` did not die."""

    n_documents: int
    n_affordable: int
    n_killed: int
    at_once: int

    @property
    def ceiling_micro_usd(self) -> int:
        """The last one that can be paid needs its worst case."""
        return (self.n_affordable - 1) * _MICRO_USD + _WORST_MICRO_USD

    @property
    def n_extracted(self) -> int:
        """A call that was killed has used up its worst case: the places of two."""
        return self.n_affordable - 2 * self.n_killed


_RACE = full_size(small=Race(7, 4, 1, 3), full=Race(40, 20, 4, 16))


def check_race(folder: Path, model: ModelServer, race: Race, more: str = "") -> None:
    """Let a job for each document race, the first of them to their death; then raise the ceiling."""
    model.script(Step(output_tokens=_MOST_TOKENS // 2))
    project = paid_project(folder, model, race.n_documents)
    project.patience_seconds = 900
    llm = f"{more}[llm]\nmax_tokens = {_MOST_TOKENS}"
    project.configure(config(f"per_day_usd = {race.ceiling_micro_usd / 1_000_000}", llm, _PRICE))
    assert project.run("state", "create").returncode == 0

    def run(number: int) -> int | None:
        document = f"docs/{number}.md"
        if number < race.n_killed:
            project.dies(_MID_CALL, "run", document)
            return None
        return project.run("run", document).returncode

    with ThreadPoolExecutor(race.at_once) as threads:
        codes = Counter(threads.map(run, range(race.n_documents)))
    n_left = race.n_documents - race.n_killed - race.n_extracted
    assert codes == {None: race.n_killed, 0: race.n_extracted, 3: n_left}
    assert len(model.calls) == race.n_killed + race.n_extracted
    ledger = spent(project)
    assert ledger["micro_usd"] == race.n_killed * _WORST_MICRO_USD + race.n_extracted * _MICRO_USD
    assert ledger["micro_usd"] <= race.ceiling_micro_usd < ledger["micro_usd"] + _WORST_MICRO_USD
    assert project.json("status")["extraction"]["COMPLETED"] == race.n_extracted
    project.configure(config("per_day_usd = 1000", llm, _PRICE))
    assert project.json("run", "--mode", "resume")["n_failed"] == 0
    _check_all_paid(project, model, race)


def _check_all_paid(project: Project, model: ModelServer, race: Race) -> None:
    """Each document is there, each call was paid once but those that were killed, and the ledger knows of each."""
    assert project.json("status")["build"] == {"COMPLETED": race.n_documents}
    assert len(model.calls) == race.n_documents + race.n_killed
    assert spent(project) == {
        "calls": len(model.calls),
        "assumed_micro_usd": race.n_killed * _WORST_MICRO_USD,
        "micro_usd": race.n_documents * _MICRO_USD + race.n_killed * _WORST_MICRO_USD,
    }


def test_exactly_what_can_be_paid_is_extracted(tmp_path: Path, model: ModelServer) -> None:
    """Who finds no room waits for what others do not need; what does not fit is PENDING until the ceiling is raised."""
    check_race(tmp_path, model, _RACE)


@pytest.mark.servers
@pytest.mark.parametrize(("state", "race"), sampled(["dynamodb", "s3"], [_RACE]))
def test_exactly_what_can_be_paid_is_extracted_on_servers(
    request: pytest.FixtureRequest, tmp_path: Path, model: ModelServer, bucket_name: str, state: str, race: Race
) -> None:
    """The same with the state in DynamoDB or S3, and the journal in S3."""
    check_race(tmp_path, model, race, on_servers(request, bucket_name, state))
