"""Chunk texts in, vectors out."""
