"""What keeps state, stores and artifacts true and tidy, apart from runs."""
