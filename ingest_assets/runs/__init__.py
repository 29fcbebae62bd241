"""One Dagster run from its beginning to its end, and what is done when it never got there."""
