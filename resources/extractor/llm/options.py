"""How a language model is used: `[llm]` and `[prices]` of the configuration."""

from collections.abc import Mapping
from decimal import Decimal

import msgspec


class Price(msgspec.Struct, frozen=True):
    """What a model costs, in USD for a million tokens."""

    input: Decimal
    output: Decimal


class LlmOptions(msgspec.Struct, frozen=True):
    """How calls are made.

    `input_tokens` is what a call carries at most, as estimated, unless one chunk alone is more; `max_tokens` what the
    model may answer, in tokens. `requests_per_minute` and `tokens_per_minute` pace all calls of the process; 0 is no
    limit but what the provider's throttling teaches. `prices` go before the ones that are shipped.
    """

    input_tokens: int = 6000
    max_tokens: int = 4096
    concurrency: int = 16
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    timeout_seconds: float = 120.0
    allow_unpriced: bool = False
    prices: Mapping[str, Price] = msgspec.field(default_factory=dict)
