"""Pacing on a clock of the tests' own."""

import asyncio
import itertools

import pytest

from resources.extractor.llm.pacer import Pacer


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        """What time it is."""
        return self.now

    async def sleep(self, seconds):
        """Let time pass."""
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
def clock():
    return Clock()


def pacer(clock, concurrency=8, **rates):
    """A pacer on that clock."""
    return Pacer(concurrency, **rates, clock=clock, sleep=clock.sleep)


async def most_in_flight(paced, n_calls):
    """How many of these calls were under way at once."""
    now = most = 0

    async def call():
        nonlocal now, most
        async with paced.turn(1):
            now += 1
            most = max(most, now)
            for _ in range(100):
                await asyncio.sleep(0)
            now -= 1

    await asyncio.gather(*(call() for _ in range(n_calls)))
    return most


async def test_requests_are_spread_over_a_minute(clock):
    """60 a minute is one a second, the first at once."""
    paced = pacer(clock, requests_per_minute=60)
    for _ in range(5):
        async with paced.turn(1):
            pass
    assert clock.now == pytest.approx(4)


async def test_tokens_are_spread_over_a_minute(clock):
    """A large call makes the next one wait longer."""
    paced = pacer(clock, tokens_per_minute=6000)
    for tokens in (500, 100, 1):
        async with paced.turn(tokens):
            pass
    assert clock.now == pytest.approx(6)


async def test_what_the_provider_asks_for_is_waited(clock):
    """Retry-After holds up everybody, not just the call that was told."""
    paced = pacer(clock)
    async with paced.turn(1) as began:
        paced.throttled(began, 7.0)
    async with paced.turn(1):
        assert clock.now == pytest.approx(7)


async def test_pauses_double_and_have_a_bound(clock):
    """Without a word from the provider the pause doubles with each throttling in a row, up to half a minute or so."""
    paced = pacer(clock)
    pauses = []
    for _ in range(8):
        async with paced.turn(1) as began:
            pauses.append(paced.throttled(began, None))
    assert all(later > earlier for earlier, later in itertools.pairwise(pauses[:5]))
    assert max(pauses) <= 30 * 1.25


async def test_throttling_halves_what_is_in_flight_and_answers_give_it_back(clock):
    """Eight at once, after a throttling four, and after enough answers eight again."""
    paced = pacer(clock)
    assert await most_in_flight(paced, 20) == 8
    async with paced.turn(1) as began:
        paced.throttled(began, 1.0)
    assert await most_in_flight(paced, 20) == 4
    for _ in range(40):
        paced.answered()
    assert await most_in_flight(paced, 20) == 8


async def test_calls_that_were_throttled_together_count_once(clock):
    """Eight calls in flight that are all refused halve the number once, not eight times."""
    paced = pacer(clock)
    began = clock.now
    clock.now += 1
    for _ in range(8):
        paced.throttled(began, 1.0)
    assert await most_in_flight(paced, 20) == 4


async def test_there_is_always_one_in_flight(clock):
    """However long a provider throttles, somebody goes on trying."""
    paced = pacer(clock)
    for _ in range(20):
        async with paced.turn(1) as began:
            paced.throttled(began, 0.1)
    assert await most_in_flight(paced, 5) == 1


async def test_a_cancelled_call_frees_its_place(clock):
    """Neither one that waits nor one under way holds up others for ever."""
    paced = pacer(clock, concurrency=1)

    async def call():
        async with paced.turn(1):
            await asyncio.sleep(60)

    tasks = [asyncio.create_task(call()) for _ in range(2)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert await most_in_flight(paced, 3) == 1
