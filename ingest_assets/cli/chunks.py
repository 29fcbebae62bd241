"""The commands about a document's chunks: show, edit, reset."""

import getpass
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ingest_assets.cli.editor import edited_by_hand
from ingest_assets.cli.finish import finish
from ingest_assets.cli.inspect import find_document, place_of
from ingest_assets.cli.opened import with_open_components
from ingest_assets.cli.output import Exit, print_as_it_is, print_json, print_table, say, shown_time
from ingest_assets.components import Components
from ingest_assets.upkeep.correcting import Corrected, edit_chunks, read_chunks, reset_chunks
from ingest_assets.upkeep.edits import LONGEST_NAME, LONGEST_NOTE, EditError, one_line, parse_edits
from resources.artifact_store.artifact import Artifact, Chunk
from resources.artifact_store.corrections import Signature, corrections_of
from resources.clock import utc_now
from resources.counting import counted
from resources.document_source.document_ids import shown_key
from resources.document_state.model import DocStatus, LinkState

_EXCERPT = 100

app = typer.Typer(no_args_is_help=True, help="Show and correct the chunks of a document.")

Document = Annotated[str, typer.Argument(help="A document id, or the path of a file or s3://bucket/key in a source.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
By = Annotated[str, typer.Option("--by", help="Who corrects. Default: the system's user.", show_default=False)]


@app.command()
def show(
    document: Document,
    as_json: AsJson = False,
    as_lines: Annotated[bool, typer.Option("--jsonl", help="Print a JSON line for each chunk, as edit reads.")] = False,
) -> None:
    """List the chunks of a document: id, place, text, and what was corrected by whom."""

    async def go(components: Components) -> int:
        doc, artifact = await read_chunks(components, (await find_document(components, document)).document_id)
        if as_lines:
            print_as_it_is(_lines([*artifact.chunks, *artifact.void_corrections]))
        elif as_json:
            print_json(
                {
                    "document_id": doc.document_id,
                    "title": doc.title,
                    "chunks": artifact.chunks,
                    "void_corrections": artifact.void_corrections,
                }
            )
        else:
            _print_chunks(doc, artifact)
        return Exit.DONE

    finish(with_open_components(go))


@app.command()
def edit(
    document: Document,
    file: Annotated[
        str, typer.Option("--file", help="JSON lines of chunk_id and text; - for standard input. Default: $EDITOR.")
    ] = "",
    by: By = "",
    note: Annotated[str, typer.Option("--note", help="Why, for whoever looks later.")] = "",
    as_json: AsJson = False,
) -> None:
    """Correct chunks. Stores that hold the document become Stale, and are rebuilt when somebody asks.

    Exit code: 0 done, or nothing differs, 1 somebody else has changed the chunk or holds the document, 2 a line
    is wrong.
    """

    async def go(components: Components) -> int:
        document_id = (await find_document(components, document)).document_id
        signature = Signature(_name(by), utc_now(), one_line(note, "note", LONGEST_NOTE))
        if file:
            edits = parse_edits(sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes())
            return _told(await edit_chunks(components, document_id, edits, signature), as_json)
        _, artifact = await read_chunks(components, document_id)
        with edited_by_hand(_lines(artifact.chunks), again=f"ingest chunks edit {document_id} --file") as text:
            return _told(await edit_chunks(components, document_id, parse_edits(text), signature), as_json)

    finish(with_open_components(go))


@app.command()
def reset(
    document: Document,
    chunk_ids: Annotated[
        list[str] | None, typer.Argument(help="Chunks as show names them. Default: all.", show_default=False)
    ] = None,
    by: By = "",
    as_json: AsJson = False,
) -> None:
    """Take corrections back, so that chunks say again what extraction has made of them."""

    async def go(components: Components) -> int:
        document_id = (await find_document(components, document)).document_id
        return _told(await reset_chunks(components, document_id, chunk_ids or (), _name(by)), as_json)

    finish(with_open_components(go))


def _name(by: str) -> str:
    name = one_line(by or _system_user(), "name", LONGEST_NAME)
    if not name:
        raise EditError("The name of who corrects is empty: --by NAME.")
    return name


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user need not have a name
        return f"uid {os.getuid()}"


def _lines(chunks: Sequence[Chunk]) -> str:
    encoder = msgspec.json.Encoder()
    return "".join(encoder.encode(chunk).decode() + "\n" for chunk in chunks)


def _print_chunks(doc: DocStatus, artifact: Artifact) -> None:
    say(f"{shown_key(doc.source_uri)}: {counted(len(artifact.chunks), 'chunk')}, {_n_live(artifact):,} corrected")
    rows = [(c.chunk_id, place_of(c.place).lstrip(", "), _excerpt(c.text), _by_whom(c)) for c in artifact.chunks]
    print_table(["chunk", "place", "text", "corrected"], rows)
    if artifact.void_corrections:
        say("\nVoid: the document does not have the text any more that was corrected.")
        void = [
            (c.chunk_id, _excerpt(c.correction.original_text if c.correction else ""), _excerpt(c.text), _by_whom(c))
            for c in artifact.void_corrections
        ]
        print_table(["chunk", "text", "corrected to", "by"], void)


def _n_live(artifact: Artifact) -> int:
    return len(corrections_of(artifact)) - len(artifact.void_corrections)


def _by_whom(chunk: Chunk) -> str:
    made = chunk.correction
    if made is None:
        return ""
    return f"{made.by} at {shown_time(made.at)} UTC" + (f": {made.note}" if made.note else "")


def _excerpt(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _EXCERPT else f"{words[:_EXCERPT]}…"


def _told(done: Corrected, as_json: bool) -> int:
    """Say what was changed, and how it comes into the stores."""
    stale = sorted(slug for slug, link in done.doc.links.items() if link.state is LinkState.STALE)
    if as_json:
        print_json(
            {
                "document_id": done.doc.document_id,
                "n_changed": done.n_changed,
                "n_corrected": _n_live(done.artifact),
                "n_void": len(done.artifact.void_corrections),
                "stale_in": stale,
            }
        )
    elif not done.n_changed:
        say("Nothing to do: every chunk says this already.")
    else:
        say(f"Chunks changed: {done.n_changed:,}. Corrected in all: {_n_live(done.artifact):,}.")
        for slug in stale:
            say(f"Stale in store '{slug}': `ingest run --store {slug} --stale` brings it there.")
    return Exit.DONE
