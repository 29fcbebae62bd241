"""What the routes work with, opened once for the server, and who asks: given to each route that names them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer

from ingest_assets.api.estimate_process import Estimator
from ingest_assets.api.launching import Launcher
from ingest_assets.api.problems import Problem
from ingest_assets.api.read_model.document_index import DocumentIndex
from ingest_assets.api.tokens import Caller, Scope
from ingest_assets.components import Components
from ingest_assets.settings import Settings

# Says in the OpenAPI document what the gate has looked at already.
_bearer = HTTPBearer(auto_error=False, description="A token as `ingest tokens new` makes them.")


@dataclass(frozen=True)
class Services:
    """Everything a route may use."""

    settings: Settings
    components: Components
    index: DocumentIndex
    launcher: Launcher
    estimator: Estimator

    @cached_property
    def store_names(self) -> dict[str, str]:
        """The names of all stores as people know them, by slug, the default first."""
        return {store.slug: store.name or store.slug for store in self.settings.stores}


def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _caller(request: Request, _: Annotated[object, Security(_bearer)]) -> Caller:
    caller: Caller = request.state.caller
    return caller


class Needs:
    """Lets a request pass only if its token has a scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __call__(self, caller: "Asking") -> None:
        """Refuse, or do nothing."""
        if self._scope not in caller.scopes:
            raise Problem(
                403,
                "scope-missing",
                f"This needs a token with the scope '{self._scope}'.",
                "Ask whoever runs the server for one, or start it without --read-only.",
            )


Given = Annotated[Services, Depends(_services)]
Asking = Annotated[Caller, Depends(_caller)]
READS, WRITES, ADMINISTERS = (Depends(Needs(scope)) for scope in Scope)
