"""Names of documents: the source URI that never changes, and the id that is the partition key.

Keys are raw bytes: file systems and buckets hold names that are no text. Percent-encoding keeps them exactly.

What lies in a container (an archive, a mail) has the container's URI, `!/` and its own path there. Percent-encoding
leaves no `!` in a key, so this names nothing else.
"""

import hashlib
import re
from urllib.parse import quote_from_bytes, unquote, unquote_to_bytes

MAX_ID_BYTES = 96
_HASH_DIGITS = 16
_SLUG_CHARACTERS = MAX_ID_BYTES - 1 - _HASH_DIGITS
_UNSAFE = re.compile(r"[^a-z0-9._]+")
MEMBER = "!/"  # between a container and the path of what lies in it, in source URIs


def source_uri(source: str, key: bytes) -> str:
    """`<source name>:<key, percent-encoded>`."""
    return f"{source}:{quote_from_bytes(key)}"


def key_of(uri: str) -> bytes:
    """The raw key of a source URI."""
    return unquote_to_bytes(uri.partition(":")[2])


def encoded_key(uri: str) -> str:
    """The key as the source URI has it, percent-encoded."""
    return uri.partition(":")[2]


def shown_key(uri: str) -> str:
    """The key as text for people: bytes that are no UTF-8 and characters that could mislead stay percent-encoded."""
    encoded = uri.partition(":")[2]
    text = unquote(encoded, errors="strict") if _is_utf8(encoded) else unquote(encoded, errors="backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "".join(f"%{byte:02X}" for byte in c.encode()) for c in text)


def parent_of(uri: str) -> str:
    """The source URI of the container that an object lies in; "" if it is no member."""
    return uri.rpartition(MEMBER)[0]


def split_member(uri: str) -> tuple[str, str]:
    """The outermost container's source URI, and what follows it; "" for what is no member."""
    container, _, path = uri.partition(MEMBER)
    return container, path


def is_below(uri: str, start: str) -> bool:
    """Whether a source URI is another one, lies in that folder, or is a member of it; "": all do."""
    return not start or uri == start or uri.startswith((start + "/", start + MEMBER))


def uri_as_named(source: str, key: bytes) -> str:
    """The source URI of a member that a person names as it is shown: `folder/mail.eml!/report.pdf`."""
    return f"{source}:" + MEMBER.join(quote_from_bytes(part) for part in key.split(MEMBER.encode()))


def document_id(org_id: str, uri: str) -> str:
    """The partition key: a readable slug of the key's end, `-`, and a hash of organisation and source URI.

    Only `[a-z0-9._-]`, at most 96 bytes, never beginning with a dot or dash; stable for any key.
    """
    digest = hashlib.sha256(f"{org_id}\0{uri}".encode()).hexdigest()[:_HASH_DIGITS]
    readable = unquote(uri.partition(":")[2], errors="ignore").lower().replace("/", "-")
    slug = _UNSAFE.sub("-", readable).strip("-.")[-_SLUG_CHARACTERS:].strip("-.")
    return f"{slug or 'document'}-{digest}".replace("..", ".-")


def hash_part(document_id: str) -> str:
    """What of an id says nothing of its name: sorting by it shuffles documents, the same way each time."""
    return document_id[-_HASH_DIGITS:]


def _is_utf8(encoded: str) -> bool:
    try:
        unquote(encoded, errors="strict")
    except UnicodeDecodeError:
        return False
    return True
