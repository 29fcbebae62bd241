"""The store kind `pgvector`."""
