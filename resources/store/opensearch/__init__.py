"""The store kind `opensearch`."""
