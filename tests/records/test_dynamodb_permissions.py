"""The documented policies grant what the backend asks for, and nothing else."""

import json
import re
from pathlib import Path

import pytest

from resources.records.dynamodb.dynamodb_backend import DynamoDbBackend
from resources.records.record import Write
from tests.records.contract import KIND, NOW, listed, put
from tests.records.dynamodb_tables import location

PAGE = Path(__file__).parents[2] / "docs" / "permissions.md"
# What each operation of the API is called in a policy is its own name.
TABLE, INDEX = "table/corpus-state", "table/corpus-state/index/*"


def granted(heading: str) -> dict[str, set[str]]:
    """The actions that the policy below a heading grants, by what they are granted on."""
    section = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    [policy] = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    statements = json.loads(policy)["Statement"]
    return {each["Resource"].rpartition(":")[2]: {a.partition(":")[2] for a in each["Action"]} for each in statements}


@pytest.fixture
async def backend(moto_url, table_prefix):
    opened = DynamoDbBackend(location(moto_url, f"{table_prefix}p"))
    yield opened
    await opened.close()


def asked(backend) -> dict[str, set[str]]:
    """What the backend asks for from now on, by what it asks it of."""
    operations: dict[str, set[str]] = {}

    def count(params, model, **_):
        place = INDEX if "IndexName" in json.loads(params["body"]) else TABLE
        operations.setdefault(place, set()).add(model.name)

    backend._calls._client().meta.events.register("before-call.dynamodb", count)
    return operations


async def test_running(backend):
    """Running needs what its policy grants, on the table and its indexes."""
    await backend.create()
    operations = asked(backend)
    stamp = await put(backend, "a", due_at=NOW, label="l", open=True)
    await backend.read(KIND, "a")
    await listed(backend, ["l"])
    await backend.list_keys(KIND, ["l"])
    await backend.list_due(KIND, NOW, 5)
    await backend.list_open(KIND)
    await backend.list_kinds()
    await backend.count_labels(KIND)
    await backend.compare_and_set(KIND, [Write("a", None, stamp)])
    assert operations == granted("State in DynamoDB, running")


async def test_making_the_table(backend, table_prefix, moto_url):
    """Making the table and adding what it lacks needs what its policy grants."""
    operations = asked(backend)
    await backend.create()
    name = f"{table_prefix}p"
    client = backend._calls._client()
    client.update_table(TableName=name, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "open"}}])
    await backend.create()
    assert operations == granted("State in DynamoDB, making the table")


@pytest.mark.parametrize("heading", ["State in S3", "Documents in S3", "Artifacts in S3"])
def test_s3_policies_reach_no_further_than_a_prefix(heading):
    """A bucket is only listed; objects are had below a prefix alone."""
    policy = granted(heading)
    bucket, objects = sorted(policy, key=len)
    assert policy[bucket] == {"ListBucket"}
    assert re.fullmatch(rf"{bucket}/\w+/\*", objects)
    assert policy[objects] <= {"GetObject", "PutObject", "DeleteObject"}
