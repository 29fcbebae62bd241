"""What the scripted model says: deterministic answers made of the chunks it is given, and faults on request.

It knows the shape of our prompt and nothing of our code: what it counts and quotes is its own.
"""

import json
import re
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

ANSWER = "answer"
ANSWER_OTHERWISE = "answer_otherwise"  # as text where a tool was asked for, fenced as Markdown does it
INVENT = "invent"  # an answer of the schema whose quotations are in no chunk
MALFORMED = "malformed"
TRUNCATED = "truncated"
FILTERED = "filtered"
REFUSED = "refused"  # the model itself would not, or a guardrail steps in
BLOCKED = "blocked"  # a content filter, before the model is asked
DROP = "drop"  # the answer is made and paid for, then the connection closed
THROTTLE = "throttle"
UNAVAILABLE = "unavailable"
BROKE_DOWN = "broke_down"  # while the answer was made
TOO_LONG = "too_long"
WRONG_KEY = "wrong_key"
NO_ACCESS = "no_access"
NO_MODEL = "no_model"
REJECT = "reject"
NO_PROTOCOL = "no_protocol"  # status 200 and a body that is no answer of the protocol
PAID = (ANSWER, ANSWER_OTHERWISE, INVENT, MALFORMED, TRUNCATED, FILTERED, REFUSED, DROP, BROKE_DOWN, NO_PROTOCOL)

_CHUNK = re.compile(r"<chunk (\d+) ([0-9a-f]{16})>\n(.*?)\n</chunk \1 \2>", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?。])\s+")
_NAME = re.compile(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)+\b")


@dataclass(frozen=True)
class Step:
    """How one call, or many, are answered.

    `contains`: only calls whose prompt has these words. `seconds`: how long the answer takes. `retry_after`: what
    throttling says. `times`: for so many calls, then the step is used up; None: for ever. `for_seconds`: for so long
    from the first call on. `output_tokens`: what it says it has used, whatever it said.
    """

    kind: str = ANSWER
    contains: str = ""
    seconds: float = 0.0
    retry_after: float | None = None
    times: int | None = None
    for_seconds: float | None = None
    output_tokens: int | None = None


@dataclass
class Received:
    """One call as it came, and what was made of it."""

    provider: str
    model: str
    prompt: str
    instructions: str
    body: dict[str, Any]
    kind: str
    input_tokens: int
    output_tokens: int
    at: float


@dataclass
class _Held:
    step: Step
    left: int | None
    ends_at: float | None = None


@dataclass
class Reply:
    """What is to be sent: the status, the JSON, and whether the connection is closed instead."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    seconds: float = 0.0


class ScriptedModel:
    """Answers calls by its script and remembers them. May be used by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steps: deque[_Held] = deque()
        self._received: list[Received] = []
        self._in_flight = self._most_in_flight = 0

    def script(self, steps: list[Step]) -> None:
        """From now on: the first step that fits a call decides; none: it is answered at once."""
        with self._lock:
            self._steps = deque(_Held(step, step.times) for step in steps)

    def report(self) -> dict[str, Any]:
        """Every call so far, and how many were in flight at most."""
        with self._lock:
            return {"most_in_flight": self._most_in_flight, "calls": [asdict(call) for call in self._received]}

    def forget(self) -> None:
        """Start counting anew."""
        with self._lock:
            self._received = []
            self._most_in_flight = 0

    def entered(self) -> None:
        """A call begins."""
        with self._lock:
            self._in_flight += 1
            self._most_in_flight = max(self._most_in_flight, self._in_flight)

    def left(self) -> None:
        """A call ends."""
        with self._lock:
            self._in_flight -= 1

    def reply(self, provider: str, model: str, body: dict[str, Any], key: str) -> Reply:
        """The reply to one call."""
        instructions, prompt, schema = _READ[provider](body)
        step = self._step_for(prompt)
        text, n_output = _answer(step.kind, prompt)
        if step.output_tokens is not None:
            n_output = step.output_tokens
        n_input = count_tokens(instructions) + count_tokens(prompt) + count_tokens(schema)
        paid = step.kind in PAID
        call = Received(
            provider,
            model,
            prompt,
            instructions,
            body,
            step.kind,
            n_input if paid else 0,
            n_output if paid else 0,
            time.time(),
        )
        with self._lock:
            self._received.append(call)
        write = _WRITE[provider]
        reply = write(step, text, n_input, n_output, key)
        reply.seconds, reply.drop = step.seconds, step.kind == DROP
        return reply

    def _step_for(self, prompt: str) -> Step:
        with self._lock:
            for held in self._steps:
                if held.step.contains not in prompt or held.left == 0:
                    continue
                if held.step.for_seconds is not None:
                    held.ends_at = held.ends_at or time.monotonic() + held.step.for_seconds
                    if time.monotonic() > held.ends_at:
                        continue
                if held.left is not None:
                    held.left -= 1
                return held.step
        return Step()


@cache
def _encoding() -> Any:
    import bpe_openai

    return bpe_openai.get_encoding("o200k_base")


@cache
def count_tokens(text: str) -> int:
    """Tokens of o200k, by a tokenizer the project itself does not use."""
    return len(_encoding().encode(text, disallowed_special=())) if text else 0


def chunks_in(prompt: str) -> list[str]:
    """The chunks of a prompt, in order."""
    return [text for _, _, text in _CHUNK.findall(prompt)]


def knowledge(text: str) -> dict[str, Any]:
    """What this model finds in a chunk: its sentences as statements, names of several words as entities."""
    sentences = [sentence.strip() for sentence in _SENTENCE.split(text) if sentence.strip()][:5]
    names = list(dict.fromkeys(_NAME.findall(text)))[:8]
    relations = []
    if len(names) > 1 and sentences:
        relations = [{"subject": names[0], "predicate": "and", "object": names[1], "quotation": names[0]}]
    topics = [{"name": word.lower(), "quotation": word} for word in text.split()[:1]]
    return {
        "statements": [{"text": sentence, "quotation": sentence} for sentence in sentences],
        "entities": names,
        "relations": relations,
        "topics": topics,
    }


def _answer(kind: str, prompt: str) -> tuple[str, int]:
    if kind == MALFORMED:
        text = '{"chunks": [{"chunk": 1, "statements": "none", "run": "rm -rf /"}]}'
    elif kind == INVENT:
        invented = {"text": "It was invented.", "quotation": "words that nobody wrote"}
        nothing = {"entities": ["Nobody At All"], "relations": [], "topics": []}
        chunks = range(1, len(chunks_in(prompt)) + 1)
        text = json.dumps({"chunks": [{"chunk": n, "statements": [invented], **nothing} for n in chunks]})
    else:
        found = [{"chunk": n, **knowledge(chunk)} for n, chunk in enumerate(chunks_in(prompt), 1)]
        text = json.dumps({"chunks": found}, ensure_ascii=False)
    if kind == TRUNCATED:
        text = text[: len(text) // 2]
    if kind == ANSWER_OTHERWISE:
        text = f"```json\n{text}\n```"
    return ("", 0) if kind in {FILTERED, REFUSED} else (text, count_tokens(text))


def _read_openai(body: dict[str, Any]) -> tuple[str, str, str]:
    messages = body["messages"]
    instructions = "".join(message["content"] for message in messages if message["role"] in {"system", "developer"})
    prompt = "".join(message["content"] for message in messages if message["role"] == "user")
    return instructions, prompt, json.dumps(body.get("response_format", ""))


def _write_openai(step: Step, text: str, n_input: int, n_output: int, key: str) -> Reply:
    if step.kind == NO_PROTOCOL:
        return Reply(200, {"hello": "world"})
    if step.kind in _OPENAI_ERRORS:
        status, code, sentence = _OPENAI_ERRORS[step.kind]
        headers = {} if step.retry_after is None else {"Retry-After": f"{step.retry_after:g}"}
        error = {"message": sentence.format(key=key), "type": "invalid_request_error", "code": code, "param": None}
        return Reply(status, {"error": error}, headers)
    reason = {TRUNCATED: "length", FILTERED: "content_filter"}.get(step.kind, "stop")
    message = {"role": "assistant", "content": text}
    if step.kind == REFUSED:
        message |= {"refusal": "I cannot help with that."}
    return Reply(
        200,
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": [{"index": 0, "finish_reason": reason, "message": message}],
            "usage": {"prompt_tokens": n_input, "completion_tokens": n_output, "total_tokens": n_input + n_output},
        },
    )


_OPENAI_ERRORS = {
    THROTTLE: (429, "rate_limit_exceeded", "Rate limit reached."),
    UNAVAILABLE: (503, None, "The server is overloaded."),
    BROKE_DOWN: (500, "server_error", "The server had an error while processing your request."),
    BLOCKED: (400, "content_filter", "The prompt was filtered by the content management policy."),
    TOO_LONG: (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
    # As OpenAI does, but worse: it repeats the whole key.
    WRONG_KEY: (401, "invalid_api_key", "Incorrect API key provided: {key}."),
    NO_ACCESS: (403, None, "Project does not have access to the model; the key was {key}."),
    NO_MODEL: (404, "model_not_found", "The model does not exist or you do not have access to it."),
    REJECT: (400, "invalid_value", "max_tokens is too large: this model supports at most 4096."),
}


def _read_bedrock(body: dict[str, Any]) -> tuple[str, str, str]:
    instructions = "".join(part["text"] for part in body.get("system", []))
    prompt = "".join(part["text"] for message in body["messages"] for part in message["content"] if "text" in part)
    return instructions, prompt, json.dumps(body.get("toolConfig", ""))


def _write_bedrock(step: Step, text: str, n_input: int, n_output: int, key: str) -> Reply:
    if step.kind == NO_PROTOCOL:
        return Reply(200, {"hello": "world"})
    if step.kind in _BEDROCK_ERRORS:
        status, code, message = _BEDROCK_ERRORS[step.kind]
        headers = {} if step.retry_after is None else {"Retry-After": f"{step.retry_after:g}"}
        return Reply(status, {"message": message.format(key=key)}, {"x-amzn-ErrorType": code, **headers})
    reason = _BEDROCK_STOPS.get(step.kind, "tool_use")
    content: list[dict[str, Any]] = [{"text": text}]
    if step.kind in {ANSWER, INVENT, MALFORMED, DROP}:
        content = [{"toolUse": {"toolUseId": "tool-1", "name": "knowledge", "input": json.loads(text)}}]
    if step.kind in {FILTERED, REFUSED}:
        content = []
    return Reply(
        200,
        {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": reason,
            "usage": {"inputTokens": n_input, "outputTokens": n_output, "totalTokens": n_input + n_output},
            "metrics": {"latencyMs": 1},
        },
    )


_BEDROCK_STOPS = {
    TRUNCATED: "max_tokens",
    FILTERED: "content_filtered",
    REFUSED: "guardrail_intervened",
    ANSWER_OTHERWISE: "end_turn",
}
_BEDROCK_ERRORS = {
    THROTTLE: (429, "ThrottlingException", "Too many requests, please wait before trying again."),
    UNAVAILABLE: (503, "ServiceUnavailableException", "Bedrock is unable to process your request."),
    BROKE_DOWN: (424, "ModelErrorException", "The model had an error while processing your request."),
    BLOCKED: (400, "ValidationException", "Output blocked by content filtering policy."),
    TOO_LONG: (400, "ValidationException", "Input is too long for requested model."),
    WRONG_KEY: (403, "UnrecognizedClientException", "The security token {key} is invalid."),
    NO_ACCESS: (403, "AccessDeniedException", "You don't have access to the model with the specified model ID."),
    NO_MODEL: (400, "ValidationException", "The provided model identifier is invalid."),
    REJECT: (400, "ValidationException", "The maximum tokens you requested exceeds the model limit of 4096."),
}

_READ = {"openai": _read_openai, "bedrock": _read_bedrock}
_WRITE = {"openai": _write_openai, "bedrock": _write_bedrock}
