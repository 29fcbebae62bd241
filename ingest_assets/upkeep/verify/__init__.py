"""Compares what is recorded with what is really there: records, links, artifacts, the rows of each store."""
