"""The static stage: what can be told of a bundle without running it."""
