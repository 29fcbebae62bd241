"""A data file of an installed wheel: read without importing the package, and refused if it is another one.

A store trusts that equal versions of an embedder mean comparable vectors, so a version stands for just these files.
"""

import hashlib
import importlib.util
from pathlib import Path
from typing import NamedTuple

from resources.embedder.embedder import Embedder


class WheelFile(NamedTuple):
    """Where a file is, and which it is.

    Attributes:
        package: the importable name of what the wheel installs.
        name: the path within the package.
        sha256: the first hex digits of the file's hash.
    """

    package: str
    name: str
    sha256: str

    def read(self, embedder: type[Embedder], remedy: str) -> bytes:
        """The file's content. Hashing takes 20 ms for the largest, 23 MB.

        Args:
            embedder: whose file it is, for errors.
            remedy: how to get the right one, for errors: a sentence.

        Raises:
            RuntimeError: the package is not installed, or its file is another one.
        """
        spec = importlib.util.find_spec(self.package)
        if spec is None or spec.origin is None:
            raise RuntimeError(f"Embedder '{embedder.name}' needs the package {self.package}. {remedy}")
        content = (Path(spec.origin).parent / self.name).read_bytes()
        found = hashlib.sha256(content).hexdigest()[: len(self.sha256)]
        if found != self.sha256:
            raise RuntimeError(
                f"Embedder '{embedder.name}' is {embedder.version}, but the installed {self.package}'s {self.name} is "
                f"another file (SHA-256 {found}…, expected {self.sha256}…). {remedy}"
            )
        return content
