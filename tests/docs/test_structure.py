"""The structure a reader is promised: three packages, and no modules that need each other."""

from graphlib import TopologicalSorter

import grimp


def test_no_modules_import_each_other() -> None:
    """The graph of imports has no circle, those inside functions and for types alone included."""
    graph = grimp.build_graph("resources", "sensors", "ingest_assets", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the circle
