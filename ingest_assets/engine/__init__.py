"""The engine: one batch of documents after the other, from their claim to their report.

A *stage* does the work and knows nothing of claims and records: `extraction_stage`, and a `build_stage` for each store.
A *phase* takes a batch through its stages and publishes what came of it: `extraction_phase`, `build_phase`, and
`removal_phase` for documents that are gone. `ingest_run` is the loop around them.
"""
