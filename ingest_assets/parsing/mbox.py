"""Mailboxes in one file (mbox): where one message ends and the next begins, and what each is called."""

import email
import email.policy
import hashlib
import re
from collections.abc import Iterator
from itertools import pairwise

# A message begins at the start, or after an empty line: in its text such a line is quoted.
_BEGIN = re.compile(
    rb"From (?:(?<=\n\nFrom )|(?<=\n\r\nFrom )|(?<=\AFrom ))[^\r\n]*\r?\n(?=[A-Za-z][A-Za-z0-9-]{0,100}:)"
)
_QUOTED = re.compile(rb"\n>(>*From )")
_HEAD_BYTES = 16 * 1024
_DIGITS = 16


def is_mailbox(filename: str, content: bytes) -> bool:
    """Whether it is called a mailbox, and begins as one does."""
    return filename.lower().endswith(".mbox") and _BEGIN.match(content) is not None


def messages(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each message. The name is of its Message-ID, so that it stays when others are taken out."""
    begins = _BEGIN.finditer(content)
    edges = [(begin.start(), begin.end()) for begin in begins]
    for (_, start), (end, _) in pairwise([*edges, (len(content), 0)]):
        message = _QUOTED.sub(rb"\n\1", content[start:end])
        yield f"message-{_digest(message)}.eml", message


def _digest(message: bytes) -> str:
    head = email.message_from_bytes(message[:_HEAD_BYTES], policy=email.policy.compat32)
    identity = str(head.get("message-id") or "").strip().encode("utf-8", "replace") or message
    return hashlib.sha256(identity).hexdigest()[:_DIGITS]
