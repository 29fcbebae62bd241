"""Parsing beside the bare library: `make bench-parse DOCS=folder of PDFs`.

Prints ratios. The machine does other things too, so the measurements alternate, and the median of the ratios of each
round counts. The folder is handed over several times as one stream: a corpus is longer than its longest document, at
whose end one of two workers has nothing left to do.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pypdfium2

from ingest_assets.parsing import Chunking, ParsedDocument, ParseLimits, ParserPool

_ROUNDS = 4
_SMALL_TEXTS = 3000
_TEXT = b"The quick brown fox jumps over the lazy dog near the river bank.\n" * 15


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where PDFs are, at any depth")
    parser.add_argument("--repeat", type=int, default=9)
    arguments = parser.parse_args()
    contents = [path.read_bytes() for path in sorted(arguments.folder.rglob("*.pdf"))] * _ROUNDS
    if not contents:
        sys.exit(f"There is no PDF in {arguments.folder}. Name a folder that has some: make bench-parse DOCS=folder")
    _pdfs(contents, arguments.repeat)
    _small_texts(arguments.repeat)


def _pdfs(contents: list[bytes], repeat: int) -> None:
    with _pool(1) as one, _pool(2) as two:
        ways: dict[str, Callable[[], int]] = {
            "bare library": lambda: sum(map(_bare_pages, contents)),
            "one worker": lambda: _pages(one, contents),
            "two workers": lambda: _pages(two, contents),
        }
        n_pages = {name: way() for name, way in ways.items()}  # and everything is loaded
        seconds = _timed(ways, repeat)
    # The same files each time, so their pages by the bare library are what each rate is of.
    rates = {name: n_pages["bare library"] / statistics.median(taken) for name, taken in seconds.items()}
    kept = _ratio(seconds["bare library"], seconds["one worker"])
    gained = _ratio(seconds["one worker"], seconds["two workers"])
    pages = f"{n_pages['bare library']} pages; {n_pages['one worker']} in documents with text"
    print(f"{len(contents) // _ROUNDS} PDFs, {_ROUNDS} times: {pages}")
    print(f"bare library {rates['bare library']:7.0f} pages/s")
    print(f"one worker   {rates['one worker']:7.0f} pages/s   {kept:.2f} of the bare library")
    print(f"two workers  {rates['two workers']:7.0f} pages/s   {gained:.2f} of one worker")


def _small_texts(repeat: int) -> None:
    """What a child costs more than doing the same here: pipes, frames, waiting."""
    from ingest_assets.parsing.document import parse

    items = [(number, f"{number}.txt", _TEXT) for number in range(_SMALL_TEXTS)]
    limits, chunking = ParseLimits(), Chunking()

    def here() -> int:
        return sum(isinstance(parse(name, content, limits, chunking), ParsedDocument) for _, name, content in items)

    with _pool(1) as pool:

        def in_a_child() -> int:
            return sum(1 for _ in pool.parse_many(items))

        ways = {"here": here, "in a child": in_a_child}
        for way in ways.values():
            way()
        seconds = _timed(ways, repeat)
    each = {name: 1000 * statistics.median(taken) / _SMALL_TEXTS for name, taken in seconds.items()}
    overhead = each["in a child"] - each["here"]
    print(f"small texts of {len(_TEXT)} bytes: here {each['here']:.3f} ms, in a child {each['in a child']:.3f} ms")
    print(f"the child's overhead is {max(0.0, overhead):.3f} ms a document")


def _pool(workers: int) -> ParserPool:
    return ParserPool(workers, ParseLimits(), Chunking())


def _pages(pool: ParserPool, contents: list[bytes]) -> int:
    items = ((number, "x.pdf", content) for number, content in enumerate(contents))
    return sum(outcome.pages or 0 for _, outcome in pool.parse_many(items) if isinstance(outcome, ParsedDocument))


def _bare_pages(content: bytes) -> int:
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError:
        return 0
    n = 0
    for index in range(len(document)):
        try:
            page = document[index]
        except pypdfium2.PdfiumError:
            continue
        text_page = page.get_textpage()
        text_page.get_text_range()
        text_page.close()
        page.close()
        n += 1
    document.close()
    return n


def _timed(ways: dict[str, Callable[[], int]], repeat: int) -> dict[str, list[float]]:
    """The seconds that each way takes, round by round."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeat):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def _ratio(seconds: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(seconds, others, strict=True))


if __name__ == "__main__":
    main()
