"""Counts in words that fit one as well."""


def counted(n: int, what: str = "document") -> str:
    """So many of something whose plural ends in s: "1 document", "1,234 pages"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
