"""Extraction by a language model: plan the calls, make each, read the answers."""
