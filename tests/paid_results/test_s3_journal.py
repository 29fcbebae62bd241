"""The journal in a bucket: the contract on moto and SeaweedFS, and what is its own: lost replies, races, requests."""

import asyncio
import uuid

import pytest

from resources.artifact_store.artifact_store import ArtifactStoreError
from resources.artifact_store.paid_results.call_log import ReservationClosedError
from resources.artifact_store.paid_results.open_journal import open_journal
from resources.artifact_store.paid_results.paid_result import ResultSelection
from resources.artifact_store.paid_results.paid_result_journal import PaidResultJournal
from resources.artifact_store.paid_results.s3_journal import S3Journal
from resources.artifact_store.paid_results.usage import Usage
from tests.paid_results.contract import NOW, JournalContract, answer, bought, call, key, opened
from tests.records.s3_store import location_of, objects_of, then
from tests.servers.clients import s3_client
from tests.servers.fault_proxy import FaultProxy
from tests.servers.faults import cut_after, cut_before, s3_error

ALWAYS = 1000


def is_put(name: str):
    """Whether a request writes an object whose name has this in it."""
    return lambda request: request.operation == "PUT" and name in request.path


class _OnS3(JournalContract):
    def reopened(self, journal) -> PaidResultJournal:
        """See JournalContract."""
        return S3Journal(self.location(journal))

    def location(self, journal):
        """Where a journal is."""
        bucket = journal._objects.bucket._location
        return location_of(bucket.name, bucket.endpoint_url, bucket.prefix.removesuffix("paid/"))

    def spoil(self, journal, name: str) -> None:
        """Put something else in an object's place."""
        place = self.location(journal)
        client = s3_client(place.endpoint_url)
        client.put_object(Bucket=place.name, Key=f"{place.prefix}paid/{name}", Body=b"spoilt")

    async def damage(self, journal, key) -> None:
        """See JournalContract."""
        self.spoil(journal, f"results/{key[:2]}/{key}")

    async def damage_log(self, journal, reservation_id) -> None:
        """See JournalContract."""
        self.spoil(journal, f"logs/{reservation_id}")


class TestOnMoto(_OnS3):
    @pytest.fixture
    async def journal(self, moto_url, bucket_name) -> PaidResultJournal:
        """A journal in a new bucket."""
        s3_client(moto_url).create_bucket(Bucket=bucket_name)
        opened_ = S3Journal(location_of(bucket_name, moto_url, "kept/"))
        yield opened_
        await opened_.shut()


@pytest.mark.servers
class TestOnSeaweedFS(_OnS3):
    @pytest.fixture(scope="class")
    def crowded_bucket(self, seaweedfs) -> str:
        """A bucket for all of these tests."""
        name = f"paid-{uuid.uuid4().hex}"
        s3_client(seaweedfs.url).create_bucket(Bucket=name)
        return name

    @pytest.fixture
    async def journal(self, seaweedfs, aws_credentials, crowded_bucket) -> PaidResultJournal:
        """A journal below a new prefix of a real server."""
        opened_ = S3Journal(location_of(crowded_bucket, seaweedfs.url, f"{uuid.uuid4().hex}/"))
        yield opened_
        await opened_.shut()


@pytest.fixture
def raw(moto_url, bucket_name):
    """A plain client, and a new bucket."""
    client = s3_client(moto_url)
    client.create_bucket(Bucket=bucket_name)
    return client


@pytest.fixture
def proxy(moto_url):
    """A proxy before moto."""
    with FaultProxy(moto_url) as standing:
        yield standing


@pytest.fixture
async def proxied(raw, proxy, bucket_name):
    """A journal that asks through the proxy and has passed the probe of its endpoint."""
    opened_ = S3Journal(location_of(bucket_name, proxy.url))
    await opened(opened_)
    yield opened_
    await opened_.shut()


@pytest.fixture
async def direct(raw, moto_url, bucket_name):
    """The same journal, without the proxy: another machine."""
    opened_ = S3Journal(location_of(bucket_name, moto_url))
    yield opened_
    await opened_.shut()


def test_stands_below_the_artifacts(aws_credentials, tmp_path):
    """The journal of an artifact store is found by the store's own URI."""
    journal = open_journal("s3://bucket/kept?endpoint_url=http://127.0.0.1:1", tmp_path)
    assert journal._objects.bucket._location.prefix == "kept/paid/"


class TestLostReplies:
    @pytest.mark.parametrize("name", ["/logs/", "/documents/", "/results/"])
    @pytest.mark.parametrize(
        "fault", [cut_after(), cut_before(), s3_error(503, "SlowDown")], ids=["lost", "cut", "slow"]
    )
    @pytest.mark.parametrize("times", [1, 8], ids=["once", "longer than boto3 tries"])
    async def test_each_write_counts_once(self, proxied, proxy, direct, name, fault, times):
        """Whichever write's reply is lost, or its request, the answer is kept once and its payment counts once."""
        await proxied.begin("r1", [call()])
        proxy.inject(fault, is_put(name), times)
        kept = await proxied.record("r1", call(), [answer("a")], Usage(3, 2, 10), NOW)
        assert kept[key("a")].body == b"answer"
        assert (await direct.seal("r1")).micro_usd == 10
        assert (await direct.find([key("a")]))[key("a")].usage == Usage(3, 2, 10)
        assert await direct.forget("doc") == 1

    async def test_busy_is_not_lost(self, proxied, proxy):
        """409 says that another request is under way: the same is sent again."""
        proxy.inject(s3_error(409, "ConditionalRequestConflict"), is_put("/logs/"), 3)
        await proxied.begin("r1", [call()])
        assert proxy.pending() == 0
        assert set((await proxied.seal("r1")).calls) == {"c1"}

    async def test_seal_wins_over_a_call_whose_write_hangs(self, proxied, proxy, direct):
        """If the log is sealed while a begin is on its way, the begin is refused: nothing is sent."""

        def sealed_first(_request, forward):
            then(lambda: direct.seal("r1"))
            return forward()

        proxy.inject(sealed_first, is_put("/logs/"))
        with pytest.raises(ReservationClosedError):
            await proxied.begin("r1", [call()])
        assert (await direct.seal("r1")).calls == {}

    async def test_begun_before_the_seal_counts_though_its_reply_was_lost(self, proxied, proxy, direct):
        """A begin that was committed, sealed, and only then heard of is in what is settled, and may be sent."""

        def committed_then_sealed(_request, forward):
            forward()
            then(lambda: direct.seal("r1"))

        proxy.inject(committed_then_sealed, is_put("/logs/"))
        # boto3 sends again by itself and is refused; the log has the call, but also the seal.
        with pytest.raises(ReservationClosedError):
            await proxied.begin("r1", [call()])
        assert set((await direct.seal("r1")).calls) == {"c1"}

    async def test_trouble_is_told(self, proxied, proxy, bucket_name):
        """What cannot be done is an error that names the place and says why, for every waiting call."""
        proxy.inject(s3_error(403, "AccessDenied"), times=ALWAYS)
        tried = await asyncio.gather(
            proxied.begin("r1", [call()]), proxied.find([key("a")]), proxied.logs(), proxied.forget("d"),
            proxied.record("r1", call(), [answer("a")], Usage(), NOW), proxied.prune(ResultSelection()),
            return_exceptions=True,
        )  # fmt: skip
        for error in tried:
            assert isinstance(error, ArtifactStoreError)
            assert f"Paid results s3://{bucket_name}/state/paid" in str(error)
            assert "not permitted" in str(error)

    async def test_endpoint_that_ignores_conditions_is_refused(self, raw, proxy, bucket_name):
        """Where conditions are ignored, two workers would overwrite each other's logs: nothing is begun there."""

        def unconditional(request, forward):
            del request.headers["If-Match"], request.headers["If-None-Match"]
            return forward()

        proxy.inject(unconditional, lambda request: request.conditional, ALWAYS)
        journal = S3Journal(location_of(bucket_name, proxy.url))
        with pytest.raises(ArtifactStoreError, match="ignores If-None-Match"):
            await opened(journal)
        await journal.shut()


class TestForgetting:
    async def test_death_on_the_way_can_be_repeated(self, proxied, proxy, direct, raw, bucket_name):
        """Wherever forgetting breaks off, forgetting again finishes it and leaves no trace of the document."""
        await bought(proxied, answer("a"), answer("b", "doc", "other"))
        await proxied.seal("r-c1")
        await proxied.close("r-c1")
        for operation in ("LIST", "GET", "PUT", "DELETE"):
            proxy.inject(s3_error(403, "AccessDenied"), lambda request, o=operation: request.operation == o)
            with pytest.raises(ArtifactStoreError):
                await proxied.forget("doc")
        await proxied.forget("doc")
        await direct.forget("other")
        assert [name for name in objects_of(raw, bucket_name) if "results" in name or "documents" in name] == []


class TestRequests:
    async def test_calls_at_once_share_puts(self, proxied, proxy):
        """64 calls that begin together are a few PUTs of their log, not 64, and no reads."""
        await proxied.begin("r1", [call("first", 1)])
        proxy.reset_traffic()
        await asyncio.gather(*(proxied.begin("r1", [call(f"c{number}", 1)]) for number in range(64)))
        assert proxy.traffic["PUT"].requests <= 4
        assert set(proxy.traffic) == {"PUT"}

    async def test_an_answer_costs_three_puts(self, proxied, proxy):
        """One for the answer, one for who uses it, one for the payment; more answers of a call cost one each."""
        await proxied.begin("r1", [call("c1", 1), call("c2", 1)])
        for call_id, names, puts in (("c1", ["a"], 3), ("c2", ["b", "c", "d"], 5)):
            proxy.reset_traffic()
            await proxied.record("r1", call(call_id, 1), [answer(name) for name in names], Usage(1, 1, 1), NOW)
            seen = {operation: traffic.requests for operation, traffic in proxy.traffic.items()}
            assert seen == {"PUT": puts}
