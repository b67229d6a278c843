"""`toolwright export`: an image of one server that needs no Toolwright."""

from __future__ import annotations

import re

import click

from orchestrator.errors import OrchestratorError
from orchestrator.settings import load_settings
from orchestrator.shelf import Shelf
from orchestrator.terminal import json_option, print_json, reported, say
from registry.store import Store
from sandbox.docker_engine import connect
from sandbox.image import export_image
from sandbox.layers import dependency_layer


@click.command("export")
@click.argument("name")
@click.option("--tag", default="", help="The image's name; toolwright-NAME:VERSION by default.")
@json_option
@reported
def command(name: str, tag: str, as_json: bool) -> None:
    """Make an image of the server NAME. It is an ordinary MCP server: no broker guards it."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        entry = store.entry(name)
        bundle = Shelf(settings.home, store).bundle(entry)
    if bundle.launch is not None:
        raise OrchestratorError(f"{name} is a third-party server: use its own package or image.")
    tag = tag or f"toolwright-{name}:{entry.version}"
    client = connect()
    try:
        layer = dependency_layer(client, bundle, say) if bundle.packages else ""
        identity = export_image(client, bundle, tag, layer)
    finally:
        client.close()
    variables = [_variable(name, credential.name) for credential in bundle.credentials]
    if as_json:
        print_json({"image": tag, "id": identity, "environment": variables})
    else:
        say(f"{tag} is made. Start it with: docker run -i --rm {tag}")
        for variable in variables:
            say(f"It wants the credential in -e {variable}")


def _variable(server: str, credential: str) -> str:
    """The environment variable that a runtime without a broker reads a credential from."""
    return re.sub("[^A-Z0-9]", "_", f"{server}_{credential}".upper())
