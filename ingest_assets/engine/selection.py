"""What of the documents a run may do."""

from collections.abc import Callable

import msgspec

from resources.document_state.model import DocStatus


class Selection(msgspec.Struct, frozen=True):
    """What of the documents a run may do.

    Attributes:
        stores: the stores it builds; the others stay as they are.
        force: extract and write the stores although nothing changed.
        named: somebody asked for just these documents: they belong into the stores from now on, and what is complete
            is reported again.
        only_due: also by name, a document comes into no store that it does not belong into already.
        renew_stores: what stands in a store by an older configuration is written anew.
        renew_extraction: what was extracted by an older configuration is extracted anew.
        rewrite: the stores are written anew from the artifact, whatever they hold and the records say.
        wants: whether a document that is free is still to be worked on.
    """

    stores: tuple[str, ...]
    force: bool = False
    named: bool = False
    only_due: bool = False
    renew_stores: bool = False
    renew_extraction: bool = False
    rewrite: bool = False
    wants: Callable[[DocStatus], bool] = lambda _: True
