"""The HTTP API: every document against every store, for programs and for the page in the same process."""
