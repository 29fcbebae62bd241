"""By which bytes archives are known whose files are documents of their own."""

_GZIP = b"\x1f\x8b"
_TAR_MAGIC = slice(257, 262)


def is_gzip(content: bytes) -> bool:
    """Whether this begins as a gzip file does."""
    return content.startswith(_GZIP)


def is_tar(content: bytes) -> bool:
    """Whether this begins as a tar archive does, of the kind written since 1988."""
    return content[_TAR_MAGIC] == b"ustar"
