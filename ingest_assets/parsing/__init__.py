"""Bytes in, text pieces out, in a process that can be killed."""
