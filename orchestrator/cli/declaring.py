"""Declaring a credential that a registered server's description forgot, at the terminal."""

from __future__ import annotations

from forge.compiler.selection import parse_credential
from forge.errors import CredentialPlaceInvalid, CredentialPlaceUnknown
from orchestrator.cli.registering import open_registering
from orchestrator.cli.terminal import err
from orchestrator.forging.carrying import declare_for
from orchestrator.forging.order import ForgeStep
from orchestrator.settings import Settings
from registry.models import Entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.apispec import SecurityScheme
from sandbox.credentials.uses import SecretUse, list_secret_uses
from sandbox.sanitize import clean_text


def find_uses(settings: Settings, server: str, name: str, place: str) -> tuple[SecretUse, ...]:
    """Where a registered server would take a secret if it had a credential at this place, such as
    `header:X-Token`. Raises CredentialPlaceUnknown, RowNotFound, ForgeFailed, CredentialTaken.
    """
    scheme = _parse_place(place, name)
    with Store.open(settings.database_url) as store:
        bundle = Bundles(settings.home, store.servers).load_bundle(store.servers.get(server))
    return list_secret_uses(declare_for(bundle, scheme)).get(name, ())


async def publish_declaring(settings: Settings, server: str, name: str, place: str) -> Entry:
    """The version of a registered server that has this credential, proved and registered. Raises
    what `Forge.declare_credential` raises.
    """
    async with open_registering(settings, "forge") as app:
        scheme = parse_credential(f"{place}=@{name}")
        return (await app.forge.declare_credential(server, scheme, _print_step)).entry


def _parse_place(place: str, name: str) -> SecurityScheme:
    """The scheme of a credential at a place. Raises CredentialPlaceUnknown."""
    try:
        return parse_credential(f"{place}=@{name}")
    except CredentialPlaceInvalid as error:
        raise CredentialPlaceUnknown(place) from error


def _print_step(step: ForgeStep) -> None:
    err.print(f"[dim]{step.stage:<9}[/dim]", end=" ")
    err.print(clean_text(step.message), markup=False)
