"""What Dagster is told of documents, many at a time."""
