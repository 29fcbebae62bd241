"""Where documents become searchable."""
