"""`toolwright export`: build an image of one server that runs without Toolwright."""

from __future__ import annotations

import re

import click

from orchestrator.cli.identifiers import StoredName
from orchestrator.cli.terminal import json_option, print_json, print_text, report_errors
from orchestrator.errors import OrchestratorError
from orchestrator.settings import load_settings
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.engines.docker.engine import connect_engine
from sandbox.engines.docker.image import export_image
from sandbox.packages.layers import build_dependency_layer


@click.command("export")
@click.argument("name", type=StoredName("server"))
@click.option("--tag", default="", help="The image's name; toolwright-NAME:VERSION by default.")
@json_option
@report_errors
def export_command(name: str, tag: str, as_json: bool) -> None:
    """Make an image of the server NAME. It is an ordinary MCP server: no broker guards it."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        entry = store.servers.get(name)
        bundle = Bundles(settings.home, store.servers).load_bundle(entry)
    if bundle.launch is not None:
        raise OrchestratorError(f"{name} is a third-party server: use its own package or image.")
    tag = tag or f"toolwright-{name}:{entry.version}"
    client = connect_engine()
    try:
        layer = build_dependency_layer(client, bundle, print_text) if bundle.packages else ""
        identity = export_image(client, bundle, tag, layer)
    finally:
        client.close()
    variables = [_name_variable(name, credential.name) for credential in bundle.credentials]
    if as_json:
        print_json({"image": tag, "id": identity, "environment": variables})
    else:
        print_text(f"{tag} is made. Start it with: docker run -i --rm {tag}")
        for variable in variables:
            print_text(f"It wants the credential in -e {variable}")


def _name_variable(server: str, credential: str) -> str:
    """The environment variable that a runtime without a broker reads a credential from."""
    return re.sub("[^A-Z0-9]", "_", f"{server}_{credential}".upper())
