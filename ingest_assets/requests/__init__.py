"""What a person or a sensor asks for: which documents, which stores, what it would do, and its doing."""
