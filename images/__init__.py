"""Content of containers, read with importlib.resources, never imported by the rest."""
