"""Chunks in, knowledge entries out."""
