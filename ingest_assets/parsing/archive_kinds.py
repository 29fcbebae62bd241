"""By which bytes a tar archive is known."""

_TAR_MAGIC = slice(257, 262)


def is_tar(content: bytes) -> bool:
    """Whether this begins as a tar archive does, of the kind written since 1988."""
    return content[_TAR_MAGIC] == b"ustar"
