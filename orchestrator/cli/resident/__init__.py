"""Commands answered by a process that has everything loaded: the resident process of a home."""
