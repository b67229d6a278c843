"""Base images beside the present one: a candidate that is being proved, and those still needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sandbox.docker_engine import Client
from sandbox.image import (
    PREFERRED_BASE,
    REPOSITORY,
    BaseImage,
    base_image,
    base_reference,
    build_on,
    debian_root,
    image_identity,
    pulled,
    translated,
)

KEPT = "kept-"


def rebuilt(client: Client, progress: Callable[[str], None]) -> BaseImage:
    """The base image built again on what its own base is by now, under a name of its own; with the
    present one's id where nothing has changed. Raises EngineUnavailable, BaseImageBuildFailed.
    """
    reference = f"{base_reference()}-next"
    with translated(f"docker build of {reference}"):
        base = pulled(client, PREFERRED_BASE, progress, anew=True)
        return build_on(client, base or debian_root(client, progress), reference, progress)


def promote(client: Client, image: BaseImage) -> None:
    """Make an image the base of what is started from now on, and keep the one before by its id, for
    the servers that were proved on it. Raises EngineUnavailable, BaseImageBuildFailed.
    """
    present = base_image(client)
    with translated(f"naming {image.reference}"):
        if present is not None and present.id != image.id:
            client.api.tag(present.id, REPOSITORY, _kept_tag(present.id), force=True)
        repository, _, tag = base_reference().rpartition(":")
        client.api.tag(image.id, repository, tag, force=True)
        client.api.remove_image(image.reference, noprune=True)


def kept_bases(client: Client) -> Mapping[str, str]:
    """The earlier base images that are kept: their names by their ids."""
    found: dict[str, str] = {}
    with translated("listing base images"):
        for listed in client.api.images(name=REPOSITORY):
            for reference in listed.get("RepoTags") or ():
                if reference.startswith(f"{REPOSITORY}:{KEPT}"):
                    found[image_identity(client, reference)] = reference
    return found


def forget_bases(client: Client, needed: Collection[str]) -> tuple[str, ...]:
    """Give up the kept base images that nothing needs; their names."""
    given_up = [name for id, name in kept_bases(client).items() if id not in needed]
    with translated("removing base images"):
        for name in given_up:
            client.api.remove_image(name, noprune=True)
    return tuple(given_up)


def _kept_tag(identity: str) -> str:
    return KEPT + identity.removeprefix("sha256:")[:12]
