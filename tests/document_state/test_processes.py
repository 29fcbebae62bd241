"""Many worker processes at one state, on each backend that more than one process can open."""

import pytest

from tests.document_state.processes_contract import ManyWorkersContract


class TestOnSqlite(ManyWorkersContract):
    @pytest.fixture
    def uri(self, tmp_path) -> str:
        """A new file."""
        return f"sqlite:///{tmp_path / 'state.db'}"
