"""Base images that servers still need are kept by their ids, and given up when none does."""

from __future__ import annotations

from sandbox.engines.docker.bases import KEPT, forget_bases, list_kept_bases
from sandbox.engines.docker.engine import Client
from sandbox.engines.docker.image import REPOSITORY, get_image_id


def test_a_base_is_kept_as_long_as_it_is_needed(docker_engine: tuple[Client, str]) -> None:
    client, reference = docker_engine
    identity = get_image_id(client, reference)
    tag = KEPT + identity.removeprefix("sha256:")[:12]
    name = f"{REPOSITORY}:{tag}"
    needed = {*list_kept_bases(client), identity}
    client.api.tag(identity, REPOSITORY, tag)
    assert list_kept_bases(client)[identity] == name
    assert forget_bases(client, needed) == ()
    assert forget_bases(client, needed - {identity}) == (name,)
    assert identity not in list_kept_bases(client)
    assert get_image_id(client, reference) == identity
