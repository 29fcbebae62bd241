"""What calls to a model used, in numbers that add up exactly."""

import msgspec


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What calls used. Money is whole millionths of a US dollar, so that sums are exact."""

    input_tokens: int = 0
    output_tokens: int = 0
    micro_usd: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """The sum."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.micro_usd + other.micro_usd,
        )

    def shared(self, n: int) -> list["Usage"]:
        """N parts that differ by at most one and whose sum is this."""
        values = msgspec.structs.astuple(self)
        return [Usage(*(value // n + (i < value % n) for value in values)) for i in range(n)]
