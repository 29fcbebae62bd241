"""The engine: one batch of documents after the other through the stages."""
