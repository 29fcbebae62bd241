"""What artifacts are called: `<document's tag>.<generation>.<hash of the bytes>`.

The tag finds a document's artifacts where names are all there is to search by. The generation keeps a name from being
given twice: what nobody refers to once its generation is closed, nobody ever will (docs/decisions/0015). A hash alone
is a name given before there were generations, and belongs to the first one.
"""

import hashlib
import re

_TAG_DIGITS = 32
_KEY = re.compile(r"([0-9a-f]{32}\.[0-9]+\.)?[0-9a-f]{64}")


def artifact_key(document_id: str, generation: int, digest: str) -> str:
    """The name of an artifact whose bytes have this hash."""
    return f"{tag_of(document_id)}{generation}.{digest}"


def tag_of(document_id: str) -> str:
    """What the names of a document's artifacts begin with, and no others."""
    return hashlib.sha256(document_id.encode()).hexdigest()[:_TAG_DIGITS] + "."


def is_artifact_key(name: str) -> bool:
    """Whether a name is one that we give: a bucket may hold other things."""
    return _KEY.fullmatch(name) is not None


def generation_of(key: str) -> int:
    """The generation in which a name was given."""
    parts = key.split(".")
    return int(parts[1]) if len(parts) > 1 else 0


def digest_of(key: str) -> str:
    """The hash of the bytes a name stands for."""
    return key.rpartition(".")[2]
