"""The commands about the HTTP API: serve, tokens new."""

from typing import Annotated

import typer

from ingest_assets.api.tokens import Scope, hash_of, new_token
from ingest_assets.cli.finish import finish
from ingest_assets.cli.output import Exit, print_json, say
from ingest_assets.settings import load_settings
from ingest_assets.settings_sections import ApiTokenSettings

tokens = typer.Typer(no_args_is_help=True, help="Make tokens for the HTTP API.")


def serve(
    host: Annotated[str, typer.Option("--host", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0: any that is free.", min=0, max=65_535)] = 8321,
    read_only: Annotated[bool, typer.Option("--read-only", help="Let nobody change anything.")] = False,
) -> None:
    """Serve the HTTP API and its page. Every request needs a token; the address to sign in with one is printed."""

    def go() -> int:
        from ingest_assets.api.serving import serve as serve_until_stopped

        try:
            serve_until_stopped(load_settings(), host, port, say, read_only=read_only)
        except KeyboardInterrupt:
            say("Stopped.")
        return Exit.DONE

    finish(go)


@tokens.callback()
def about_tokens() -> None:
    """Make tokens for the HTTP API."""


@tokens.command()
def new(
    user: Annotated[str, typer.Option("--user", help="Whose it is.")] = "",
    scope: Annotated[Scope, typer.Option("--scope", help="Each includes those before it.")] = Scope.READ,
    org_id: Annotated[str, typer.Option("--org", help="Whose documents it sees; else those of `org_id`.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of sentences.")] = False,
) -> None:
    """Make a token and print it once, with what is to stand in ingest.toml. Nothing is kept."""

    def go() -> int:
        token = new_token()
        kept = ApiTokenSettings(hash=hash_of(token), user=user or "user", scopes=(scope.value,), org_id=org_id)
        if as_json:
            print_json({"token": token, **kept.model_dump()})
            return Exit.DONE
        say(f"The token, which is shown this once:\n\n{token}\n\nFor ingest.toml:\n")
        say(f'[[api.tokens]]\nhash = "{kept.hash}"\nuser = "{kept.user}"\nscopes = ["{scope}"]')
        if org_id:
            say(f'org_id = "{org_id}"')
        return Exit.DONE

    finish(go)
