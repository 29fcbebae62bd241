"""Classes that the configuration names: built in, or added by an installed package through an entry point."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any


class UnknownPlugInError(LookupError):
    """Nothing has the name; the message lists what there is."""


class PlugIns:
    """The classes of one entry point group. Nothing is imported before it is asked for."""

    def __init__(self, group: str, built_in: Mapping[str, str]) -> None:
        """Take what is there without any other package.

        Args:
            group: the entry points by which packages add theirs.
            built_in: `module:Class` by name.
        """
        self._group = group
        self._built_in = {name: EntryPoint(name, reference, group) for name, reference in built_in.items()}

    def load(self, name: str) -> Any:
        """The class called `name`.

        Built-in ones go first: no package can take their place unnoticed, and looking through all packages takes 20 ms.

        Raises:
            UnknownPlugInError: there is none.
            ModuleNotFoundError: a package that it needs is not installed.
        """
        found = self._built_in.get(name)
        if found is None:
            known = {entry.name: entry for entry in entry_points(group=self._group)} | self._built_in
            if name not in known:
                raise UnknownPlugInError(f"Known: {', '.join(sorted(known))}.")
            found = known[name]
        return found.load()
