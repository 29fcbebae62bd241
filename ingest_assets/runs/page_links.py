"""Links from Dagster to the page, where it is known how people reach it (`public_url` under `[api]`)."""

from collections.abc import Mapping

import dagster as dg

from resources.document_state.model import DocStatus

LABEL = "page"


def page_link(public_url: str, path: str) -> Mapping[str, dg.UrlMetadataValue]:
    """Metadata with a link to a path of the page; none if it is not known where that is."""
    return {LABEL: dg.MetadataValue.url(f"{public_url}{path}")} if public_url else {}


def document_link(public_url: str, doc: DocStatus) -> Mapping[str, dg.UrlMetadataValue]:
    """Metadata with a link to a document. Ids are of characters that need no quoting."""
    return page_link(public_url, f"/documents/{doc.document_id}")
