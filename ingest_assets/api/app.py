"""The application: its routes behind the gate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ingest_assets.api import (
    changes,
    documents,
    estimates,
    health,
    jobs,
    listings,
    metrics,
    problems,
    stores,
)
from ingest_assets.api.estimate_process import Estimator
from ingest_assets.api.launching import Launcher
from ingest_assets.api.read_model.open_index import opened_index
from ingest_assets.api.security import Gate, Rules
from ingest_assets.api.services import Services
from ingest_assets.components import Components
from ingest_assets.page.problem_pages import ProblemPages
from ingest_assets.page.router import router as page
from ingest_assets.settings import Settings

VERSION = "1"


def build_app(settings: Settings, rules: Rules) -> FastAPI:
    """The whole application. Nothing is opened before it starts.

    Args:
        settings: the configuration.
        rules: what the gate keeps.
    """

    @asynccontextmanager
    async def opened(app: FastAPI) -> AsyncIterator[None]:
        async with Components(settings) as components, opened_index(components.backend, settings.api) as index:
            await components.configured()  # opens what takes long to open before somebody waits for it
            launcher = Launcher(settings, components)
            app.state.services = Services(settings, components, index, launcher, Estimator(settings))
            watching = asyncio.create_task(launcher.watch())
            yield
            watching.cancel()

    app = FastAPI(title="ingest-assets", version=VERSION, lifespan=opened, docs_url=None, redoc_url=None)
    for router in (
        page,
        health.router,
        documents.router,
        changes.router,
        stores.router,
        jobs.router,
        estimates.router,
        listings.router,
        metrics.router,
    ):
        app.include_router(router)
    problems.add_handlers(app)
    app.openapi = lambda: _document_of(app)  # type: ignore[method-assign]
    app.add_middleware(Gate, rules=rules)
    app.add_middleware(ProblemPages)
    return app


def _document_of(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: FastAPI's, with errors as they are really answered."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        app.openapi_schema = problems.declared(document)
    return app.openapi_schema
