"""The OpenAPI document as a page that needs no script and nothing from elsewhere."""

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def reference(request: Request) -> HTMLResponse:
    """Every route with its parameters and answers."""
    document = request.app.openapi()
    operations = [
        _operation(method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = [_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    return HTMLResponse(_page(escape(document["info"]["title"]), "".join(operations), "".join(schemas)))


def _page(title: str, operations: str, schemas: str) -> str:
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}: the API</title>"
        f"<h1>{title}: the API</h1><p>The same for programs: <a href=/openapi.json>openapi.json</a>. "
        f"Each request needs <code>Authorization: Bearer TOKEN</code>.</p>"
        f"<h2>Routes</h2>{operations}<h2>Objects</h2>{schemas}</html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = "".join(
        f"<li><code>{escape(p['name'])}</code> ({escape(p['in'])}, {_type(p['schema'])}) "
        f"{escape(p.get('description', ''))}</li>"
        for p in operation.get("parameters", [])
    )
    body = "".join(
        f"<li>body: {_type(content.get('schema', {}))}</li>"
        for content in operation.get("requestBody", {}).get("content", {}).values()
    )
    answers = "".join(
        f"<li>{escape(code)}: {escape(answer['description'])} "
        + ", ".join(_type(content.get("schema", {})) for content in answer.get("content", {}).values())
        + "</li>"
        for code, answer in operation["responses"].items()
    )
    return (
        f"<h3><code>{method.upper()} {escape(path)}</code></h3><p>{escape(operation.get('description', ''))}</p>"
        f"<ul>{parameters}{body}{answers}</ul>"
    )


def _schema(name: str, schema: dict[str, Any]) -> str:
    fields = "".join(
        f"<li><code>{escape(field)}</code> ({_type(of)}) {escape(of.get('description', ''))}</li>"
        for field, of in schema.get("properties", {}).items()
    )
    values = ", ".join(f"<code>{escape(str(value))}</code>" for value in schema.get("enum", []))
    about = escape(schema.get("description", ""))
    return f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{about} {values}</p><ul>{fields}</ul>'


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words, with a link to an object that is named."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(choice) for choice in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(schema.get("type", "anything")))
