"""Base images that servers still need are kept by their ids, and given up when none does."""

from __future__ import annotations

from sandbox.bases import KEPT, forget_bases, kept_bases
from sandbox.docker_engine import Client
from sandbox.image import REPOSITORY, image_identity


def test_a_base_is_kept_as_long_as_it_is_needed(docker_engine: tuple[Client, str]) -> None:
    client, reference = docker_engine
    identity = image_identity(client, reference)
    tag = KEPT + identity.removeprefix("sha256:")[:12]
    name = f"{REPOSITORY}:{tag}"
    needed = {*kept_bases(client), identity}
    client.api.tag(identity, REPOSITORY, tag)
    assert kept_bases(client)[identity] == name
    assert forget_bases(client, needed) == ()
    assert forget_bases(client, needed - {identity}) == (name,)
    assert identity not in kept_bases(client)
    assert image_identity(client, reference) == identity
