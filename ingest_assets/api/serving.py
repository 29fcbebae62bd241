"""`ingest serve`: the application on a socket of this machine."""

import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping
from ipaddress import ip_address

import uvicorn

from ingest_assets.api.app import build_app
from ingest_assets.api.security import SIGN_IN, Rules
from ingest_assets.api.tokens import FEWEST_CHARACTERS, TOKEN_VARIABLE, Caller, Scope, Tokens, hash_of, new_token
from ingest_assets.settings import ConfigurationError, Settings

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_SECONDS_TO_FINISH = 3


class CannotListenError(ConfigurationError):
    """The address cannot be listened on."""


def serve(
    settings: Settings,
    host: str,
    port: int,
    say: Callable[[str], None],
    *,
    read_only: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        settings: the configuration.
        host: a name or address of this machine.
        port: 0 for any that is free.
        say: tells the person at the terminal where to go; may be given a token.
        read_only: allow no change, whatever a token's scopes are.
        environment: for INGEST_API_TOKEN.

    Raises:
        ConfigurationError: the host can be reached from elsewhere and no token is configured, or one is too short.
        CannotListenError: the port is taken, or the host is none of this machine.
    """
    known = configured_tokens(settings, environment)
    made = ""
    if not known:
        if not is_loopback(host):
            raise ConfigurationError(
                f"{host} can be reached from other machines, and no token is configured. Set {TOKEN_VARIABLE}, or put "
                "what `ingest tokens new` prints into ingest.toml."
            )
        made = new_token()
        known = [(hash_of(made), _owner(settings))]
    rules = Rules(
        Tokens(known),
        frozenset({*_LOOPBACK_NAMES, host.lower(), *(name.lower() for name in settings.api.hosts)}),
        settings.api.requests_per_minute,
        settings.api.body_bytes,
        read_only,
    )
    listening = _listen(host, port)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
    say(f"Serving on {address}. Ctrl-C stops it; jobs that it started go on.")
    if made:
        say(f"Sign in: {address}{SIGN_IN}?token={made}")
    else:
        say(f"Sign in: {address}/ asks for one of the configured tokens.")
    _log_to_stderr()
    config = uvicorn.Config(
        build_app(settings, rules),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_SECONDS_TO_FINISH,
    )
    uvicorn.Server(config).run(sockets=[listening])


def configured_tokens(settings: Settings, environment: Mapping[str, str]) -> list[tuple[str, Caller]]:
    """The hashes of all tokens that the environment and the configuration name, and whose they are.

    Raises:
        ConfigurationError: the one in the environment is too short.
    """
    known = [
        (
            token.hash,
            Caller.with_scopes(token.user, token.org_id or settings.org_id, [Scope(scope) for scope in token.scopes]),
        )
        for token in settings.api.tokens
    ]
    token = environment.get(TOKEN_VARIABLE, "")
    if token:
        if len(token) < FEWEST_CHARACTERS:
            raise ConfigurationError(
                f"{TOKEN_VARIABLE} has fewer than {FEWEST_CHARACTERS} characters and could be guessed. "
                "`ingest tokens new` makes a long one."
            )
        known.append((hash_of(token), _owner(settings)))
    return known


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _owner(settings: Settings) -> Caller:
    return Caller.with_scopes("owner", settings.org_id, [Scope.ADMIN])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((address[0], port), family=family, backlog=2048)
    except OSError as error:
        raise CannotListenError(
            f"Cannot listen on {host} port {port}: {error.strerror}. Choose another with --port, or 0 for any."
        ) from error


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("ingest_assets.api")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
