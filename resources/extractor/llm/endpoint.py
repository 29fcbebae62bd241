"""One request to a model by pydantic-ai: nothing is retried below, so that no payment is hidden.

| name | where | credentials |
|---|---|---|
| `openai:<model>` | OpenAI, or any server of its chat completions that OPENAI_BASE_URL names | OPENAI_API_KEY |
| `bedrock:<model id>` | Amazon Bedrock's Converse | as boto3 finds them, or AWS_BEARER_TOKEN_BEDROCK |

The answer's schema goes as a response format to the one, and as the only, forced tool to the other, where that is what
every model understands.
"""

import asyncio
import functools
import os
import re
import warnings
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from resources.aws.client import new_session, region_of
from resources.document_state.reasons import Reason
from resources.extractor.llm.answer import Usage, answer_schema
from resources.extractor.llm.model_error import ModelError, model_error
from resources.extractor.llm.options import LlmOptions
from resources.extractor.llm.prompt import INSTRUCTIONS

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

_CONNECT_SECONDS = 10.0
_OPENAI_HOST = "api.openai.com"
# These refuse `max_tokens`, which servers of the same protocol know better than its successor.
_REASONS_FIRST = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9])")


class Reply(msgspec.Struct, frozen=True):
    """What came back: the JSON that should be an answer, why it ended, and what it used (0: it did not say)."""

    text: str
    finish_reason: str
    usage: Usage


class _Opened(NamedTuple):
    model: "Model[Any]"
    output: "ModelRequestParameters"
    close: Callable[[], Awaitable[None]]


class Endpoint:
    """A model that can be asked. Belongs to the event loop that first asks it."""

    def __init__(self, model: str, options: LlmOptions) -> None:
        self._name = model
        self._options = options
        self._opened: _Opened | None = None

    async def ask(self, prompt: str) -> Reply:
        """Send one request.

        Raises:
            ModelError: no reply, or none that is of the protocol.
        """
        failure: ModelError
        try:
            response = await self._request(prompt)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 whatever a library raises may carry a key
            failure = model_error(self._name, error)
        else:
            return _reply(response)
        raise failure

    async def close(self) -> None:
        """Close its connections."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    async def _request(self, prompt: str) -> "ModelResponse":
        from pydantic_ai.direct import model_request
        from pydantic_ai.messages import ModelRequest

        if self._opened is None:
            self._opened = _open(self._name, self._options)
        settings: ModelSettings = {
            "temperature": 0.0,
            "max_tokens": self._options.max_tokens,
            "request_timeout": self._options.timeout_seconds,
        }
        with warnings.catch_warnings():
            # Models that reason take no temperature; pydantic-ai leaves it out and says so in each call.
            warnings.filterwarnings("ignore", message="Sampling parameters", category=UserWarning)
            return await model_request(
                self._opened.model,
                [ModelRequest.user_text_prompt(prompt, instructions=INSTRUCTIONS)],
                model_settings=settings,
                model_request_parameters=self._opened.output,
                instrument=False,
            )


def _open(name: str, options: LlmOptions) -> _Opened:
    provider, _, model = name.partition(":")
    return _open_openai(model, options) if provider == "openai" else _open_bedrock(model, options)


def check_openai_access(model: str) -> None:
    """Whether the environment says enough to ask a model of OpenAI's protocol.

    Raises:
        ModelError: the key is missing, or stands where logs would show it.
    """
    url = os.environ.get("OPENAI_BASE_URL", "")
    parts = urlsplit(url)
    if parts.password or parts.username:
        raise ModelError(
            Reason.MODEL_ACCESS, "OPENAI_BASE_URL has a password in it, which logs would show. Use OPENAI_API_KEY."
        )
    if not os.environ.get("OPENAI_API_KEY") and (not url or parts.hostname == _OPENAI_HOST):
        raise ModelError(Reason.MODEL_ACCESS, f"openai:{model}: OPENAI_API_KEY is not set, and nor is OPENAI_BASE_URL.")


def _open_openai(model: str, options: LlmOptions) -> _Opened:
    from openai import AsyncOpenAI, Timeout
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.profiles import merge_profile
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    check_openai_access(model)
    url, key = os.environ.get("OPENAI_BASE_URL", ""), os.environ.get("OPENAI_API_KEY", "")
    client = AsyncOpenAI(
        api_key=key or "none",  # servers of one's own often want none
        base_url=url or None,
        max_retries=0,
        timeout=Timeout(options.timeout_seconds, connect=_CONNECT_SECONDS),
    )
    is_openai = not url or urlsplit(url).hostname == _OPENAI_HOST
    new_name = is_openai or bool(_REASONS_FIRST.search(model))
    profile: OpenAIModelProfile = {"openai_chat_supports_max_completion_tokens": new_name}
    opened = OpenAIChatModel(
        model,
        provider=OpenAIProvider(openai_client=client),
        profile=lambda known: merge_profile(known, profile),
    )
    output = OutputObjectDefinition(json_schema=answer_schema(), name="knowledge", strict=True)
    return _Opened(opened, ModelRequestParameters(output_mode="native", output_object=output), client.close)


def _open_bedrock(model: str, options: LlmOptions) -> _Opened:
    import anyio.to_thread
    from botocore.config import Config
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider
    from pydantic_ai.tools import ToolDefinition

    # pydantic-ai waits for boto3 in anyio's threads, of which there are 40.
    threads = anyio.to_thread.current_default_thread_limiter()
    threads.total_tokens = max(threads.total_tokens, options.concurrency)
    session = new_session()
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=options.timeout_seconds,
        max_pool_connections=options.concurrency,
        retries={"total_max_attempts": 1},
    )
    client = session.create_client("bedrock-runtime", region_name=region_of(session), config=config)
    opened = BedrockConverseModel(model, provider=BedrockProvider(bedrock_client=client))
    tool = ToolDefinition(
        name="knowledge",
        description="Give the knowledge of all chunks.",
        parameters_json_schema=answer_schema(),
        kind="output",
    )
    output = ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
    return _Opened(opened, output, functools.partial(asyncio.to_thread, client.close))


def _reply(response: "ModelResponse") -> Reply:
    from pydantic_ai.messages import TextPart, ToolCallPart

    # A model may answer in text although it has a tool to use, and the other way round: what counts is the JSON.
    calls = [part.args_as_json_str() for part in response.parts if isinstance(part, ToolCallPart)]
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    usage = Usage(response.usage.input_tokens or 0, response.usage.output_tokens or 0)
    return Reply(calls[0] if calls else "".join(texts), response.finish_reason or "", usage)
