"""The static stage: rules that check a bundle without running it."""
