"""What was paid for: each answer of a model, kept the moment it arrives, and what each call cost."""
