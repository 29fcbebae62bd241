"""The page: what the HTTP API knows, as HTML for people, rendered in the same process."""
