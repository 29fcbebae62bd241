"""What lists, filters and counts of documents run on: a narrow table kept up from the state."""
