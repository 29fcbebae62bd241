"""Compare-and-set records by kind and key, on several backends."""
