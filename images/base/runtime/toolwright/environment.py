"""Values of the host, as far as the bundle's `env:` permissions go and a person granted them."""

from __future__ import annotations

from .calls import current_call


def get(name: str) -> str:
    """The value of that name. Raises RequestFailed where it was not granted or is not set."""
    return current_call().ask("env", {"name": name}).data.decode()
