"""What tokens cost: genai-prices as it is shipped, which asks nobody, and the configuration's own prices before it."""

from collections.abc import Mapping
from decimal import Decimal

from resources.extractor.extractor import ExtractorConfigError
from resources.extractor.llm.answer import Usage
from resources.extractor.llm.options import Price

_PROVIDERS = {"openai": "openai", "bedrock": "aws"}
_MILLION = Decimal(1_000_000)


class UnpricedModelError(ExtractorConfigError):
    """Nobody knows what a model costs."""


class PriceList:
    """Prices by the whole name of a model, its provider in front: `openai:gpt-4o-mini`."""

    def __init__(self, own: Mapping[str, Price], *, allow_unpriced: bool = False) -> None:
        self._own = own
        self._allow_unpriced = allow_unpriced

    def cost(self, model: str, usage: Usage) -> Decimal:
        """USD for this usage of one call; 0 for a model without a price, where that is allowed.

        Raises:
            UnpricedModelError: the model has no price, and `allow_unpriced` is not set.
        """
        if own := self._own.get(model):
            return (own.input * usage.input_tokens + own.output * usage.output_tokens) / _MILLION
        shipped = _shipped(model, usage)
        if shipped is None and not self._allow_unpriced:
            raise UnpricedModelError(
                f"No price is known for the model '{model}'. Give it one in ingest.toml, in USD for a million tokens "
                f'(0 if it is your own): [prices."{model}"] input = 0.0, output = 0.0. '
                "Or set allow_unpriced = true in [llm], and its calls count as free."
            )
        return shipped or Decimal(0)


def _shipped(model: str, usage: Usage) -> Decimal | None:
    """What the provider asks for a model of this name; None if it lists none."""
    from genai_prices import Usage as CountedUsage
    from genai_prices import calc_price

    provider, _, name = model.partition(":")
    counted = CountedUsage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
    try:
        return Decimal(calc_price(counted, name, provider_id=_PROVIDERS[provider]).total_price)
    except LookupError:
        return None
