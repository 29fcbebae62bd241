"""E-mail: the headers a person reads, the text, the names of what is attached."""

import codecs
import email
import email.policy
import mimetypes
from collections import deque
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from functools import partial

from ingest_assets.parsing.decode import decode
from ingest_assets.parsing.limits import ParseLimits
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_source.containers import is_container
from resources.document_state.reasons import Reason

_HEADERS = ("Subject", "From", "To", "Cc", "Date")
_SIGNATURES = frozenset({"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"})
# Python's own table, each type with its usual suffix first: what `mimetypes` reads of the machine is out of reach here,
# and would give one attachment another name on another machine.
_SUFFIXES = {kind: suffix for suffix, kind in reversed(mimetypes.types_map.items())}
_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read(source: Source, text: Text) -> None:
    """Write headers and text of the message, and of messages forwarded in it.

    Raises:
        Refused: `too_large`, `too_deep`, `password_required`.
    """
    text.markdown = False
    message = _opened(source.content)
    text.suggest_title(_header(message, "Subject"))
    _write_message(message, text, source.limits, _Budget(source.limits.archive_entries), 0)
    unread = (
        ()
        if is_container(source.filename)
        else _attached(message, source.limits, _Budget(source.limits.archive_entries), 0)
    )
    if any(True for _ in unread):
        text.warn("Its attachments are not read. Give it a name that ends in .eml, and they are documents.")


def attachments(content: bytes, limits: ParseLimits) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Name and loader of every attachment, those of forwarded messages included.

    Pictures shown in the text and signatures are none.

    Raises:
        Refused: `too_large`, `too_deep`, `password_required`.
    """
    yield from _attached(_opened(content), limits, _Budget(limits.archive_entries), 0)


def _attached(
    message: EmailMessage, limits: ParseLimits, budget: "_Budget", depth: int
) -> Iterator[tuple[str, Callable[[], bytes]]]:
    for part in _leaves(message, budget):
        if part.get_content_type() == "message/rfc822":
            _check_depth(depth, limits)
            for inner in _inner(part):
                yield from _attached(inner, limits, budget, depth + 1)
        elif _is_attachment(part) and not _is_decoration(part):
            yield (
                _filename(part) or f"attachment{_SUFFIXES.get(part.get_content_type(), '')}",
                partial(_payload, part),
            )


def _opened(content: bytes) -> EmailMessage:
    # Bytes of a byte order mark or of wide characters would hide the headers.
    if content.startswith(_BOMS) and (decoded := decode(content, None)) is not None:
        content = decoded.text.encode("utf-8", "replace")
    message = email.message_from_bytes(content, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    if _is_encrypted(message):
        raise Refused(Reason.PASSWORD_REQUIRED, "The message is encrypted.")
    return message


def _is_attachment(part: EmailMessage) -> bool:
    """A multipart message that has no parts is one whose boundary is missing: what it holds is its text."""
    return part.get_content_disposition() == "attachment" or part.get_content_maintype() not in {"text", "multipart"}


def _is_decoration(part: EmailMessage) -> bool:
    """Pictures that the text shows, and what proves who sent it."""
    is_shown = part.get_content_maintype() == "image" and part.get_content_disposition() != "attachment"
    return is_shown or part.get_content_type() in _SIGNATURES


def _payload(part: EmailMessage) -> bytes:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        raise Refused(Reason.MALFORMED, "The attachment has no bytes.")
    return payload


def _check_depth(depth: int, limits: ParseLimits) -> None:
    if depth == limits.nesting:
        raise Refused(Reason.TOO_DEEP, f"Messages lie in each other deeper; limits.nesting is {limits.nesting}.")


def _is_encrypted(message: EmailMessage) -> bool:
    """Whether its whole body is encrypted, by OpenPGP or S/MIME."""
    kind = message.get_content_type()
    return kind == "multipart/encrypted" or (
        kind in {"application/pkcs7-mime", "application/x-pkcs7-mime"}
        and message.get_param("smime-type") != "signed-data"
    )


class _Budget:
    """How many more parts a message may have, those of forwarded ones included."""

    def __init__(self, parts: int) -> None:
        self._most = parts
        self._left = parts

    def spend(self) -> None:
        """Count a part.

        Raises:
            Refused: `too_large`.
        """
        self._left -= 1
        if self._left < 0:
            raise Refused(Reason.TOO_LARGE, f"It has more parts; limits.archive_entries is {self._most:,}.")


def _write_message(message: EmailMessage, text: Text, limits: ParseLimits, budget: _Budget, depth: int) -> None:
    lines = [f"{name}: {value}" for name in _HEADERS if (value := _header(message, name))]
    text.block("\n".join(lines))
    attached: list[str] = []
    forwarded: list[EmailMessage] = []
    bodies: list[EmailMessage] = []
    for part in _leaves(message, budget):
        if part.get_content_type() == "message/rfc822":
            forwarded.extend(inner for inner in _inner(part) if isinstance(inner, EmailMessage))
        elif _is_attachment(part):
            attached.append(_filename(part))
        else:
            bodies.append(part)
    for body in bodies:
        _write_body(body, text)
    names = [name for name in attached if name]
    if names:
        text.block("Attachments: " + ", ".join(names))
    for inner in forwarded:
        _check_depth(depth, limits)
        _write_message(inner, text, limits, budget, depth + 1)


def _leaves(message: EmailMessage, budget: _Budget) -> Iterator[EmailMessage]:
    """Parts that are not containers; of alternatives the plain one, else the HTML one."""
    waiting: deque[EmailMessage] = deque([message])
    while waiting:
        part = waiting.popleft()
        budget.spend()
        kind = part.get_content_type()
        if not part.is_multipart() or kind == "message/rfc822":
            yield part
        elif kind == "multipart/alternative":
            waiting.extendleft(reversed(_preferred(part)))
        else:
            waiting.extendleft(reversed(_inner(part)))


def _inner(part: EmailMessage) -> list[EmailMessage]:
    payload = part.get_payload()
    return [inner for inner in payload if isinstance(inner, EmailMessage)] if isinstance(payload, list) else []


def _preferred(part: EmailMessage) -> list[EmailMessage]:
    choices = _inner(part)
    for kind in ("text/plain", "multipart/related", "multipart/mixed", "text/html"):
        for choice in choices:
            if choice.get_content_type() == kind and (kind != "text/plain" or (_text(choice) or "").strip()):
                return [choice]
    return choices[:1]


def _write_body(part: EmailMessage, text: Text) -> None:
    words = _text(part)
    if words is None:
        text.warn("A part that says it is text is not, and was left out.")
    elif part.get_content_subtype() == "html":
        from ingest_assets.parsing.formats.html import write_html

        write_html(words, text)
    else:
        text.block(words)


def _text(part: EmailMessage) -> str | None:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return None
    if not payload:
        return ""
    decoded = decode(payload, part.get_content_charset())
    return decoded.text if decoded else None


def _header(message: EmailMessage, name: str) -> str:
    """A header's words; the standard library raises on some that are broken, and then they are taken raw."""
    try:
        value = message.get(name)
    except Exception:  # noqa: BLE001 - its parser of addresses and dates raises IndexError, AttributeError, more
        value = next((raw for key, raw in message.raw_items() if key.lower() == name.lower()), None)
    return " ".join(str(value).split()) if value is not None else ""


def _filename(part: EmailMessage) -> str:
    try:
        name = part.get_filename()
    except Exception:  # noqa: BLE001 - as for headers
        return ""
    return " ".join(str(name).replace("\\", "/").rpartition("/")[2].split()) if name else ""
