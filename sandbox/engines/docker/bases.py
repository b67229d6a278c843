"""Base images beside the present one: a rebuilt candidate, and earlier ones still in use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sandbox.engines.docker.engine import Client
from sandbox.engines.docker.image import (
    PREFERRED_BASE,
    REPOSITORY,
    BaseImage,
    build_base_on,
    compute_base_reference,
    find_base_image,
    get_image_id,
    import_debian_root,
    pull_image,
    translate_errors,
)

KEPT = "kept-"


def rebuild_base(client: Client, progress: Callable[[str], None]) -> BaseImage:
    """Rebuild the base image on the current version of its own base, under a separate name. Its id
    is the present one's if nothing changed. Raises EngineUnavailable, BaseImageBuildFailed.
    """
    reference = f"{compute_base_reference()}-next"
    with translate_errors(f"docker build of {reference}"):
        base = pull_image(client, PREFERRED_BASE, progress, anew=True)
        return build_base_on(
            client, base or import_debian_root(client, progress), reference, progress
        )


def promote_base(client: Client, image: BaseImage) -> None:
    """Make an image the present base, and keep the previous one under a name of its id, for the
    servers proved on it. Raises EngineUnavailable, BaseImageBuildFailed.
    """
    present = find_base_image(client)
    with translate_errors(f"naming {image.reference}"):
        if present is not None and present.id != image.id:
            client.api.tag(present.id, REPOSITORY, _build_kept_tag(present.id), force=True)
        repository, _, tag = compute_base_reference().rpartition(":")
        client.api.tag(image.id, repository, tag, force=True)
        client.api.remove_image(image.reference, noprune=True)


def list_kept_bases(client: Client) -> Mapping[str, str]:
    """The earlier base images that are kept: a mapping of id to name."""
    found: dict[str, str] = {}
    with translate_errors("listing base images"):
        for listed in client.api.images(name=REPOSITORY):
            for reference in listed.get("RepoTags") or ():
                if reference.startswith(f"{REPOSITORY}:{KEPT}"):
                    found[get_image_id(client, reference)] = reference
    return found


def forget_bases(client: Client, needed: Collection[str]) -> tuple[str, ...]:
    """Remove the kept base images whose id is not `needed`; returns their names."""
    given_up = [name for id, name in list_kept_bases(client).items() if id not in needed]
    with translate_errors("removing base images"):
        for name in given_up:
            client.api.remove_image(name, noprune=True)
    return tuple(given_up)


def _build_kept_tag(identity: str) -> str:
    return KEPT + identity.removeprefix("sha256:")[:12]
