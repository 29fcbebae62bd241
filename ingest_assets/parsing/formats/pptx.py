"""PowerPoint: a page a slide, with titles as headings, tables, grouped shapes and notes."""

import io
import re
from functools import partial
from typing import Any

from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.opc.package import PartFactory
from pptx.package import Package
from pptx.parts.presentation import PresentationPart
from pptx.shapes.group import GroupShape

from ingest_assets.parsing.formats.ooxml import accepted, one_line, opened, write_drawings, write_table
from ingest_assets.parsing.result import Refused
from ingest_assets.parsing.text import Source, Text
from resources.document_state.reasons import Reason

_DEEPEST = 20
_DIAGRAMS = re.compile(r"ppt/diagrams/data\d*\.xml")
_FURNITURE = frozenset([PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.DATE])
_OOXML = "application/vnd.openxmlformats-officedocument.presentationml."

# Slide shows and templates have the parts of a presentation.
for _kind in (
    _OOXML + "slideshow.main+xml",
    _OOXML + "template.main+xml",
    "application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml",
    "application/vnd.ms-powerpoint.template.macroEnabled.main+xml",
):
    PartFactory.part_type_for[_kind] = PresentationPart


def read(source: Source, text: Text) -> None:
    """Write every slide.

    Raises:
        Refused: `malformed`, `too_deep`, `too_many_pages`, `inflates_too_much`.
    """
    content = accepted(source)
    part = opened(lambda: Package.open(io.BytesIO(content)).presentation_part)
    if not isinstance(part, PresentationPart):
        raise Refused(Reason.MALFORMED, "It has no presentation in it.")
    text.suggest_title(part.core_properties.title)
    slides = part.presentation.slides
    if len(slides) > source.limits.pages:
        raise Refused(Reason.TOO_MANY_PAGES, f"It has {len(slides):,} slides; limits.pages is {source.limits.pages:,}.")
    for number in range(len(slides)):
        start = text.length
        text.page(number + 1)
        _write_slide(opened(partial(slides.__getitem__, number)), text)
        if text.length == start:
            text.pages.pop()
            text.empty_pages += 1
    text.n_pages = len(slides)
    write_drawings(source, _DIAGRAMS, text)


def _write_slide(slide: Any, text: Text) -> None:
    title = slide.shapes.title
    if title is not None and title.has_text_frame:
        text.heading(2, title.text_frame.text)
    for shape in slide.shapes:
        if title is None or shape.shape_id != title.shape_id:
            _write_shape(shape, text, 0)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            text.block(f"Notes: {notes}")


def _write_shape(shape: Any, text: Text, depth: int) -> None:
    if depth > _DEEPEST:
        raise Refused(Reason.TOO_DEEP, f"Its shapes are grouped more than {_DEEPEST} deep.")
    if shape.is_placeholder and shape.placeholder_format.type in _FURNITURE:
        return
    if isinstance(shape, GroupShape):
        for inner in shape.shapes:
            _write_shape(inner, text, depth + 1)
    elif getattr(shape, "has_table", False):
        write_table(([_cell(cell) for cell in row.cells] for row in shape.table.rows), text)
    elif getattr(shape, "has_chart", False):
        _write_chart(shape.chart, text)
    elif shape.has_text_frame:
        for paragraph in shape.text_frame.paragraphs:
            words = one_line(paragraph.text)
            if words:
                text.add("  " * paragraph.level + ("- " if paragraph.level else "") + words + "\n")
        text.add("\n" if shape.text_frame.text.strip() else "")


def _cell(cell: Any) -> str:
    """A cell's words once: those it is merged over stay empty."""
    return "" if cell.is_spanned else one_line(cell.text)


def _write_chart(chart: Any, text: Text) -> None:
    """A chart's title, and its numbers as a table."""
    if chart.has_title and chart.chart_title.has_text_frame:
        text.block(chart.chart_title.text_frame.text)
    for plot in chart.plots:
        series = list(plot.series)
        rows = [["", *(one_line(str(entry.name)) for entry in series)]]
        columns = [list(entry.values) for entry in series]
        for index, category in enumerate(plot.categories):
            values = [column[index] if index < len(column) else None for column in columns]
            rows.append([one_line(str(category)), *("" if value is None else f"{value:g}" for value in values)])
        write_table(rows, text)
