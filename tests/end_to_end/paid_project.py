"""A project whose extractor is paid, and what the two sides say that it cost: the server's bill and the ledger."""

from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.project import Project
from tests.servers.clients import patient, s3_client
from tests.servers.fixtures import ENVIRONMENT
from tests.servers.model_server import ModelServer
from tests.servers.scripted_model import PAID

MODEL = "openai:gpt-4o-mini"
SOURCE = '[[sources]]\nname = "docs"\nuri = "docs"\n'
PRICE = f'[prices."{MODEL}"]\ninput = 100\noutput = 400\n'


def config(spend: str = "", more: str = "", price: str = PRICE) -> str:
    """An ingest.toml; `more` goes before the first table."""
    return f'extractor = "{MODEL}"\ndefault_embedder = "hash"\n{more}\n{SOURCE}\n{price}\n[spend]\n{spend}\n'


def paid_project(root: Path, model: ModelServer, n_documents: int) -> Project:
    """A project of documents each of which takes one call, all different."""
    project = Project(root, config())
    project.environment = {**ENVIRONMENT, **model.environment()}
    for number in range(n_documents):
        project.write(f"{number}.md", f"Grace Hopper wrote compiler number {number}. Ada Lovelace wrote notes.\n")
    return project


def on_servers(request: pytest.FixtureRequest, bucket_name: str, state: str) -> str:
    """Settings for a state in "s3", "dynamodb" or, beside the project, "sqlite", and artifacts and journal in S3."""
    s3 = request.getfixturevalue("seaweedfs").url
    s3_client(s3).create_bucket(Bucket=bucket_name)
    where = ""
    if state == "s3":
        where = patient(f"s3://{bucket_name}/state?endpoint_url={s3}")
    if state == "dynamodb":
        table = f"t{bucket_name.removeprefix('bucket-')}"
        where = patient(f"dynamodb://{table}?endpoint_url={request.getfixturevalue('dynamodb_local')}")
    return f'document_state_store = "{where}"\nartifact_store = "s3://{bucket_name}/artifacts?endpoint_url={s3}"\n'


def bill(model: ModelServer) -> int:
    """What the calls really cost, in millionths of a dollar."""
    paid_calls = [call for call in model.calls if call.kind in PAID]
    return sum(100 * call.input_tokens + 400 * call.output_tokens for call in paid_calls)


def spent(project: Project) -> dict[str, Any]:
    """What the ledger says, added up; nothing may be reserved any more."""
    report = project.json("spend")
    assert not report["open"]
    totals = [totals for models in report["days"].values() for totals in models.values()]
    return {key: sum(each.get(key, 0) for each in totals) for key in ("calls", "micro_usd", "assumed_micro_usd")}
