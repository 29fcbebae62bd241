"""The fault of a run that ended for another reason than failed documents; known where Dagster is not loaded."""


class RunError(Exception):
    """A run ended early. Its message says which run and why."""
