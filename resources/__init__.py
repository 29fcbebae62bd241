"""What a run reaches for: state, sources, artifacts, extractors, embedders, stores."""
