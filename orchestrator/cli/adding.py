"""Registering a server that somebody else wrote, for the commands that do."""

from __future__ import annotations

from collections.abc import Iterable

from forge.text import render_count
from orchestrator.cli.registering import open_registering
from orchestrator.cli.terminal import print_table, print_text
from orchestrator.errors import OrchestratorError
from orchestrator.forging.thirdparty.registration import AddedServer, Addition, Additions
from orchestrator.settings import Settings
from registry.secrets.signing import Signer
from sandbox.bundle.offer import Offer
from sandbox.bundle.permissions import Permission, parse_permission


async def add_server(
    settings: Settings, addition: Addition, signer: Signer, quiet: bool
) -> AddedServer:
    """Fetch, cage, list and register a server. Raises what `Additions.add` raises."""
    async with open_registering(settings, "add", quiet) as app:
        additions = Additions(
            app.store.servers,
            app.store.grants,
            app.consents,
            app.forge.shelf,
            app.forge.engine,
            app.outfit,
            settings.of_engine.private,
        )
        return await additions.add(
            addition, signer, lambda line: None if quiet else print_text(line, "dim")
        )


def read_permissions(
    allow: Iterable[str], private: Iterable[str], env: Iterable[str], fs: Iterable[str]
) -> tuple[tuple[Permission, ...], dict[str, str], tuple[str, ...]]:
    """The permissions, the secrets by variable, and the hosts that may be private."""
    secrets = {}
    for pair in env:
        variable, _, secret = pair.partition("=@")
        if not variable or not secret or "=" in variable:
            raise OrchestratorError(
                f"--env takes KEY=@SECRET, the name of a secret and never its value. Put the value "
                f"into the vault: toolwright secret set NAME.{variable.partition('=')[0][:60]}"
            )
        secrets[variable] = secret
    try:
        local = tuple(parse_permission(f"network:{host}") for host in private)
        wanted = [
            *(parse_permission(f"network:{host}") for host in allow),
            *local,
            *(parse_permission(f"env:{variable}") for variable in secrets),
            *(parse_permission(f"fs:{path}") for path in fs),
        ]
    except ValueError as error:
        raise OrchestratorError(f"{error}.") from error
    return tuple(dict.fromkeys(wanted)), secrets, tuple(each.name for each in local)


def _render_offer(offer: Offer) -> str:
    counts = {
        "prompt": len(offer.prompts),
        "resource": len(offer.resources),
        "template": len(offer.templates),
    }
    told = [f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items() if count]
    return f"besides: {', '.join(told)}; `toolwright run` passes them on"


def print_added(added: AddedServer) -> None:
    """Print each tool's access and what the server was granted."""
    entry, bundle = added.entry, added.bundle
    what = "is unchanged" if added.unchanged else f"is {entry.state}"
    print_text(f"{entry.name} version {entry.version} {what}.", "bold green")
    print_table(("tool", "access"), ((tool.name, tool.access) for tool in bundle.tools))
    if bundle.launch is not None and bundle.launch.offer.pins:
        print_text(_render_offer(bundle.launch.offer))
    print_text("permissions: " + (", ".join(bundle.permissions) or "none"))
    writes = sum(tool.access == "write" for tool in bundle.tools)
    if writes:
        tools = render_count(len(bundle.tools), "tool")
        print_text(f"{writes} of {tools} count as writes, and ask you before each call.")
    for finding in added.left_out:
        print_text(f"left out: {finding.where}: {finding.reason}", "yellow")
