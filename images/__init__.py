"""What goes into containers, read with importlib.resources, never imported by the rest."""
