"""What extraction produced, content-addressed and immutable."""
