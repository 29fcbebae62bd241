"""A conversation from the command line: it grows, and only what is new costs."""

import json
from pathlib import Path

from tests.end_to_end.paid_project import config
from tests.end_to_end.project import Project
from tests.servers.fixtures import ENVIRONMENT
from tests.servers.model_server import ModelServer
from tests.servers.scripted_model import chunks_in


def said(n: int) -> str:
    """A conversation of so many turns."""
    return json.dumps([{"speaker": "Ann", "content": f"Boat number {turn} is blue."} for turn in range(n)])


def test_a_conversation_grows(tmp_path: Path, model: ModelServer) -> None:
    """The plan counts the new turns only, the run asks about them only, and `show` says how far it is extracted."""
    project = Project(tmp_path, config())
    project.environment = {**ENVIRONMENT, **model.environment()}
    project.write("talk.json", said(4))
    assert project.json("run")["n_succeeded"] == 1
    shown = project.json("show", "docs/talk.json")
    assert (shown["last_extracted_turn"], shown["media_type"]) == (3, "application/vnd.ingest.conversation+json")
    project.write("talk.json", said(6))
    [cost] = project.json("plan")["spending"]["documents"]
    assert (cost["n_calls"], cost["n_answered"]) == (1, 0)
    model.forget()
    assert project.json("run")["n_succeeded"] == 1
    assert [len(chunks_in(call.prompt)) for call in model.calls] == [2]
    hit = project.json("search", "Ann: Boat number 5 is blue.", "-k", "1")[0]
    assert hit["place"]["headings"] == ["turn 5"]
    assert project.json("verify")["n_differences"] == 0
