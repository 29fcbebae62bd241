"""Executes a run as soon as it is launched, in a thread of this process."""

from concurrent.futures import ThreadPoolExecutor

from dagster._core.launcher import LaunchRunContext
from dagster._core.launcher.sync_in_memory_run_launcher import SyncInMemoryRunLauncher


class ThreadRunLauncher(SyncInMemoryRunLauncher):
    """Not in the caller's thread: the webserver's has an event loop, and a run has one of its own."""

    def launch_run(self, context: LaunchRunContext) -> None:
        """Execute the run to its end."""
        with ThreadPoolExecutor(1) as thread:
            thread.submit(super().launch_run, context).result()
