"""The store kind `duckdb`."""
