"""What goes wrong between the backend and DynamoDB: lost replies, throttling, refusals, servers that are none."""

import asyncio
import json
import threading

import msgspec
import pytest
from msgspec import structs

from resources.records.backend import BackendError, BackendUnavailableError
from resources.records.dynamodb import calls
from resources.records.dynamodb.dynamodb_backend import DynamoDbBackend
from resources.records.record import Write
from tests.records.contract import KIND, NOW, put
from tests.records.dynamodb_tables import location, new_table
from tests.servers.exchange import Answer
from tests.servers.fault_proxy import FaultProxy
from tests.servers.faults import HeldRequests, answer, cut_after, cut_before, dynamodb_error

WRITES = ("PutItem", "DeleteItem")
PATIENCE = 30
JSON = [("Content-Type", "application/x-amz-json-1.0")]


@pytest.fixture
def proxy(moto_url):
    with FaultProxy(moto_url) as started:
        yield started


@pytest.fixture
async def backend(proxy, table_prefix):
    async with new_table(proxy.url, table_prefix) as opened:
        yield opened


@pytest.fixture
def impatient(monkeypatch):
    """Calls are tried again at once, and not for long."""
    monkeypatch.setattr(calls, "_LONGEST_PAUSE", 0.001)
    monkeypatch.setattr(calls, "_TRIED_FOR", 0.1)


def fail(proxy, fault, *operations, times=10**9):
    """A fault for the next requests of these operations."""
    proxy.inject(fault, when=lambda request: request.operation in operations, times=times)


class TestLostReplies:
    @pytest.mark.parametrize("fault", [cut_before, cut_after])
    async def test_own_write_is_recognised(self, backend, proxy, fault):
        """Whichever conditional call of a record's life the line breaks at, boto3 sends it again and it counts once."""
        stamp = None
        for number, value in enumerate((b"created", b"changed", None)):
            fail(proxy, fault(), *WRITES, times=1)
            [result] = await backend.compare_and_set(KIND, [Write("a", value, stamp, NOW)])
            assert result.written, number
            stamp = result.stamp
            found = await backend.read(KIND, "a")
            assert (found and (found.value, found.stamp)) == (value and (value, stamp))

    async def test_every_call_of_a_bulk_is_cut(self, backend, proxy):
        """Of a hundred writes each of which loses its first reply, all are recognised, and the refused stay refused."""
        theirs = await put(backend, "k50", b"theirs")
        cut = set()
        lock = threading.Lock()

        def first_of_its_key(request):
            key = json.loads(request.body).get("Item", {}).get("key", {}).get("S")
            with lock:
                return request.operation == "PutItem" and not (key in cut or cut.add(key))

        proxy.inject(cut_after(), when=first_of_its_key, times=10**9)
        results = await backend.compare_and_set(KIND, [Write(f"k{i}", b"ours", None) for i in range(100)])
        assert [result.key for result in results if not result.written] == ["k50"]
        assert results[50].stamp == theirs
        assert len(cut) == 100

    async def test_a_line_that_stays_broken(self, backend, proxy, impatient):
        """Without any reply nothing is known, which is said; reading tells, once the line is there again."""
        fail(proxy, cut_after(), *WRITES)
        with pytest.raises(BackendUnavailableError, match="thing 'a'"):
            await backend.compare_and_set(KIND, [Write("a", b"1", None)])
        assert (await backend.read(KIND, "a")).value == b"1"

    async def test_nothing_goes_on_after_an_error(self, backend, proxy):
        """When a call has failed, none of its writes is under way any more, and what was not begun is left."""
        fail(proxy, dynamodb_error("ValidationException"), "PutItem", times=1)
        with pytest.raises(BackendError):
            await backend.compare_and_set(KIND, [Write(f"k{i}", b"", None) for i in range(300)])
        sent = proxy.traffic["PutItem"].requests
        await asyncio.sleep(0.2)
        assert proxy.traffic["PutItem"].requests == sent < 100


class TestThrottling:
    async def test_a_busy_table_is_tried_again(self, backend, proxy):
        """Throttled more often than boto3 itself tries, a call gets through."""
        fail(proxy, dynamodb_error("ProvisionedThroughputExceededException"), "PutItem", times=4)
        assert (await backend.compare_and_set(KIND, [Write("a", b"", None)]))[0].written

    @pytest.mark.parametrize(
        ("code", "status"),
        [
            ("ProvisionedThroughputExceededException", 400),
            ("TransactionConflictException", 400),
            ("InternalServerError", 500),
            ("ServiceUnavailable", 503),
        ],
    )
    async def test_for_good(self, backend, proxy, impatient, monkeypatch, code, status):
        """What stays busy or broken is unavailable, which names store and record: trying again later can help."""
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        backend = DynamoDbBackend(backend._calls._location)
        fail(proxy, dynamodb_error(code, status), "PutItem", "BatchGetItem", "Query")
        for call in (
            backend.compare_and_set(KIND, [Write("a", b"", None)]),
            backend.read(KIND, "a"),
            backend.list_due(KIND, NOW, 5),
        ):
            with pytest.raises(BackendUnavailableError) as raised:
                await call
            assert backend.uri in str(raised.value)
            assert call.__name__ == "list_due" or "thing 'a'" in str(raised.value)

    async def test_unprocessed_keys_are_asked_for_again(self, backend, proxy, impatient):
        """A busy server that answers a third of what it is asked for is asked on, and each record comes once."""
        await backend.compare_and_set(KIND, [Write(f"k{i}", str(i).encode(), None) for i in range(250)])

        asked_before: set[int] = set()

        def part(request, forward):
            given = forward()
            said = json.loads(given.body)
            [(table, asked)] = json.loads(request.body)["RequestItems"].items()
            n_keys = len(asked["Keys"])
            # The first time nothing at all, then a third.
            n_answered = n_keys // 3 + 1 if n_keys in asked_before else 0
            asked_before.add(n_keys)
            answered = [key["key"] for key in asked["Keys"][:n_answered]]
            said["Responses"][table] = [item for item in said["Responses"][table] if item["key"] in answered]
            left = asked["Keys"][n_answered:]
            said["UnprocessedKeys"] = {table: dict(asked, Keys=left)} if left else {}
            return Answer(given.status, json.dumps(said).encode(), JSON)

        fail(proxy, part, "BatchGetItem")
        found = await backend.read_many(KIND, [f"k{i}" for i in range(300)])
        assert {key: record.value for key, record in found.items()} == {f"k{i}": str(i).encode() for i in range(250)}

    async def test_unprocessed_for_good(self, backend, proxy, impatient):
        """A server that never answers any of the keys is unavailable, which is not absent."""

        def none(request, forward):
            asked = json.loads(request.body)["RequestItems"]
            said = {"Responses": {}, "UnprocessedKeys": asked}
            return Answer(200, json.dumps(said).encode(), JSON)

        fail(proxy, none, "BatchGetItem")
        with pytest.raises(BackendUnavailableError, match="busy"):
            await backend.read(KIND, "a")


class TestRefusals:
    @pytest.mark.parametrize("code", ["AccessDeniedException", "UnrecognizedClientException", "ValidationException"])
    async def test_what_does_not_heal(self, backend, proxy, code):
        """Missing permissions and wrong credentials are errors that trying again does not mend."""
        fail(proxy, dynamodb_error(code), "PutItem", "BatchGetItem")
        for call in (backend.compare_and_set(KIND, [Write("a", b"", None)]), backend.read(KIND, "a")):
            with pytest.raises(BackendError, match=r"thing 'a'.*") as raised:
                await call
            assert not isinstance(raised.value, BackendUnavailableError)
            assert code in str(raised.value) or "not permitted" in str(raised.value)

    async def test_who_may_only_read(self, backend, proxy):
        """Reading goes on where writing is not permitted, and the error says which permission is missing."""
        await put(backend, "a")
        fail(proxy, dynamodb_error("AccessDeniedException"), *WRITES)
        assert (await backend.read(KIND, "a")).value == b"v"
        with pytest.raises(BackendError, match="PutItem is not permitted"):
            await backend.compare_and_set(KIND, [Write("b", b"", None)])

    async def test_a_page_that_is_not_dynamodb(self, backend, proxy):
        """A page of something in between does not pass for an absent record or a done write."""
        fail(proxy, answer(200, b"<html>Please log in</html>", "text/html"), "PutItem", "BatchGetItem", "Query")
        for call in (
            backend.compare_and_set(KIND, [Write("a", b"", None)]),
            backend.read(KIND, "a"),
            backend.list_open(KIND),
        ):
            with pytest.raises(BackendUnavailableError, match="not DynamoDB"):
                await call

    @pytest.mark.parametrize(
        ("left_out", "says"), [("AWS_ACCESS_KEY_ID", "No credentials"), ("AWS_REGION", "No region is set")]
    )
    async def test_what_boto3_is_not_given(self, moto_url, aws_credentials, monkeypatch, left_out, says):
        """Without credentials or region nothing is asked, and the error says what to set."""
        for name in {left_out, left_out.replace("REGION", "DEFAULT_REGION")}:
            monkeypatch.delenv(name)
        lacking = DynamoDbBackend(
            msgspec.structs.replace(location(moto_url, "t"), region="" if "region" in says else "x")
        )
        with pytest.raises(BackendError, match=says) as raised:
            await lacking.read(KIND, "a")
        assert not isinstance(raised.value, BackendUnavailableError)
        await lacking.close()

    async def test_nobody_listens(self, table_prefix):
        """A server that is not there is unavailable."""
        nowhere = DynamoDbBackend(location("http://127.0.0.1:9", "t"))
        with pytest.raises(BackendUnavailableError, match="No answer"):
            await nowhere.read(KIND, "a")
        await nowhere.close()

    async def test_an_address_that_cannot_be(self, aws_credentials):
        """An address that cannot be is an error of ours that names the store."""
        nowhere = DynamoDbBackend(location("http://", "t"))
        with pytest.raises(BackendError, match="dynamodb://") as raised:
            await nowhere.read(KIND, "a")
        assert not isinstance(raised.value, BackendUnavailableError)
        await nowhere.close()


class TestWaiting:
    async def test_an_endpoint_that_is_too_slow(self, backend, proxy):
        """A server that answers too late is unavailable; a write that came late in the end counts once."""
        hasty = DynamoDbBackend(structs.replace(backend._calls._location, read_timeout=0.5))
        with HeldRequests() as held:
            fail(proxy, held, "PutItem", times=1)
            [result] = await hasty.compare_and_set(KIND, [Write("a", b"1", None)])
        assert result.written
        assert (await backend.read(KIND, "a")).stamp == result.stamp
        with HeldRequests() as held:
            fail(proxy, held, "BatchGetItem")
            with pytest.raises(BackendUnavailableError, match="No answer"):
                await hasty.read(KIND, "a")
        await hasty.close()

    async def test_the_loop_goes_on(self, backend, proxy):
        """While DynamoDB is slow, other tasks of the event loop run."""
        with HeldRequests() as held:
            fail(proxy, held, "PutItem", times=1)
            writing = asyncio.create_task(put(backend, "a"))
            await held.arrival()
            assert not writing.done()
        await writing

    async def test_a_heartbeat_does_not_wait_for_a_load(self, backend, proxy):
        """A single write from another thread gets through while a load of a hundred waits for a slow server."""
        with HeldRequests() as held:
            proxy.inject(held, when=lambda request: b'"beat"' not in request.body, times=10**9)
            load = asyncio.create_task(backend.compare_and_set(KIND, [Write(f"k{i}", b"", None) for i in range(100)]))
            await held.arrival()
            async with asyncio.timeout(PATIENCE):
                await asyncio.to_thread(lambda: asyncio.run(put(backend, "beat")))
            assert not load.done()
        assert all(result.written for result in await load)

    async def test_closing_gives_back_threads(self, backend):
        """After closing, the backend's threads have ended, and using it is an error."""
        await backend.compare_and_set(KIND, [Write(f"k{i}", b"", None) for i in range(50)])
        mine = [*backend._threads._single._threads, *backend._threads._bulk._threads]
        await backend.close()
        assert not any(thread.is_alive() for thread in mine)
        with pytest.raises(RuntimeError):
            await backend.read(KIND, "a")
