"""Opening a file of a folder whoever changes the folder meanwhile: no link leads out of it."""

import os
from collections.abc import Callable

Opener = Callable[[str, int], int]
_ON_THE_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW


def opener_below(root: bytes, path: bytes) -> Opener:
    """What `open` is given as opener to open a file, waiting for nobody: a pipe would wait for its writer for ever.

    A path that was found to lie inside may lead elsewhere a moment later, where a folder on its way was replaced by a
    link. So it is opened folder by folder, and no link is followed: where there is one now, there was none before.

    Args:
        root: the folder, free of links.
        path: the file, free of links when it was last looked at, and below the folder.
    """

    def opened(_: str, flags: int) -> int:
        *folders, name = os.path.relpath(path, root).split(b"/")
        at = os.open(root, _ON_THE_WAY)
        try:
            for folder in folders:
                inner = os.open(folder, _ON_THE_WAY, dir_fd=at)
                os.close(at)
                at = inner
            return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        finally:
            os.close(at)

    return opened
