"""The truth about each document: its record, its transitions, claims, workers and jobs."""
