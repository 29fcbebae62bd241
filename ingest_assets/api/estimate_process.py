"""Estimates by a process of its own: documents are parsed there, never in the server, and only some of many."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence

import msgspec

from ingest_assets.api.own_process import command, environment, open_log
from ingest_assets.requests.sampling import SECONDS, EstimateReply, SampledSpending, SampleWanted, drawn, of_all
from ingest_assets.settings import Settings

log = logging.getLogger(__name__)
# To start and to finish what is begun. One document may take as long as `limits.wall_seconds` allows.
_SECONDS_BESIDES = 20.0
_MOST_AT_ONCE = 2


class NotEstimatedError(Exception):
    """What extraction would cost cannot be told; the message says why, for people."""


class Estimator:
    """Has estimates made, at most two at a time; whoever comes then waits for his turn."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)

    async def spending(self, document_ids: Sequence[str], *, renews: bool) -> SampledSpending:
        """What extracting documents would cost.

        Args:
            document_ids: all of them; at least one.
            renews: as for `estimate_spending`.

        Raises:
            NotEstimatedError: it cannot be told.
        """
        wanted = SampleWanted(drawn(document_ids), renews)
        async with self._turns:
            try:
                said = await asyncio.wait_for(self._ask(wanted), SECONDS + _SECONDS_BESIDES)
            except TimeoutError as error:
                raise NotEstimatedError("Reading and parsing some of the documents took too long.") from error
        if said.refusal:
            raise NotEstimatedError(said.refusal)
        if said.estimate is None or not said.estimate.documents:
            raise NotEstimatedError("No document could be looked at.")
        return of_all(said.estimate, len(document_ids))

    async def _ask(self, wanted: SampleWanted) -> EstimateReply:
        """Start the process, and wait for its word. It does not outlive whoever waits."""
        with open_log(self._settings, "estimates") as output:
            process = await asyncio.create_subprocess_exec(
                *command("estimate-sample"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=output,
                env=environment(self._settings),
                start_new_session=True,
            )
        try:
            said, _ = await process.communicate(msgspec.json.encode(wanted))
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        try:
            return msgspec.json.decode(said, type=EstimateReply)
        except msgspec.MsgspecError as error:
            log.warning("An estimate ended with code %s; logs/estimates.log says why", process.returncode)
            raise NotEstimatedError("The estimate failed; the server's log of estimates says why.") from error
