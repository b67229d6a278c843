"""`toolwright add`: register an MCP server that somebody else wrote."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.adding import add_server, print_added, read_permissions
from orchestrator.cli.terminal import (
    ask_pin,
    check_secret_set,
    err,
    json_option,
    pin_option,
    print_json,
    report_errors,
    run_coroutine,
)
from orchestrator.forging.thirdparty.registration import AddedServer, Addition
from orchestrator.forging.thirdparty.source import ImageSource, ProgramSource, Source, parse_command
from orchestrator.settings import load_settings
from sandbox.bundle.model import Bundle
from sandbox.bundle.offer import Offer

NO_CAGE = (
    "!! --unconfined: this server runs as a plain process of yours, WITHOUT A SANDBOX. It can read "
    "your files, your keys and your network, and send what it finds anywhere. Toolwright only "
    "decides which of its tools are called. Do this with code that you would run by itself."
)


@click.command("add", context_settings={"ignore_unknown_options": False})
@click.argument("name")
@click.argument("command_line", nargs=-1, metavar="[-- COMMAND…]", type=click.UNPROCESSED)
@click.option("--image", help="Run this image; COMMAND is what it runs instead of its own.")
@click.option("--package", multiple=True, help="With `-- python -m MODULE`: the PyPI packages.")
@click.option("--allow", multiple=True, metavar="HOST[:PORT]", help="It may connect there; 443.")
@click.option(
    "--allow-private",
    multiple=True,
    metavar="HOST[:PORT]",
    help="It may connect there also where the address is private.",
)
@click.option(
    "--env", multiple=True, metavar="KEY=@SECRET", help="It gets this secret of the vault as KEY."
)
@click.option("--fs", multiple=True, metavar="PATH:ro|rw", help="It sees this directory or file.")
@click.option("--read", multiple=True, metavar="TOOL", help="You say that this tool only reads.")
@click.option("--write", multiple=True, metavar="TOOL", help="You say that this tool writes.")
@click.option("--unconfined", is_flag=True, help="Run it as a plain process, WITHOUT A SANDBOX.")
@click.option("--experimental", is_flag=True, help="Register it even where its texts are refused.")
@pin_option
@json_option
@report_errors
def add_command(
    name: str,
    command_line: tuple[str, ...],
    image: str | None,
    package: tuple[str, ...],
    allow: tuple[str, ...],
    allow_private: tuple[str, ...],
    env: tuple[str, ...],
    fs: tuple[str, ...],
    read: tuple[str, ...],
    write: tuple[str, ...],
    unconfined: bool,
    experimental: bool,
    pin_file: Path | None,
    as_json: bool,
) -> None:
    """Register the MCP server that COMMAND starts as NAME: `npx -y PACKAGE …`, `uvx PACKAGE …`,
    `python -m MODULE …`, `python FILE …`, `docker run IMAGE …`, or an image. It is fetched now and
    stays at that version. It runs in a container that reaches no network, file or secret but those
    that you name here; `toolwright grant` gives more later. Asks for the PIN.
    """
    settings = load_settings()
    permissions, secrets, private = read_permissions(allow, allow_private, env, fs)
    for secret in secrets.values():
        check_secret_set(settings, secret, name)
    addition = Addition(
        name=name,
        source=_parse_source(command_line, image, package, unconfined),
        permissions=permissions,
        secrets=secrets,
        reads=read,
        writes=write,
        private=private,
        experimental=experimental,
    )
    if unconfined:
        err.print(NO_CAGE, style="bold red")
    signer = ask_pin(settings, pin_file)
    added = run_coroutine(add_server(settings, addition, signer, quiet=as_json))
    if as_json:
        print_json(_encode_result(added))
    else:
        print_added(added)


def _parse_source(
    words: tuple[str, ...], image: str | None, packages: tuple[str, ...], unconfined: bool
) -> Source:
    if image and unconfined:
        raise click.UsageError("an image always runs in a container: leave --unconfined out")
    if image:
        return ImageSource(image, words)
    if unconfined and words:
        return ProgramSource(words)
    return parse_command(words, packages)


def _encode_result(added: AddedServer) -> dict[str, object]:
    return {
        "server": added.entry.name,
        "version": added.entry.version,
        "state": added.entry.state,
        "unchanged": added.unchanged,
        "permissions": list(added.bundle.permissions),
        "tools": [{"name": tool.name, "access": tool.access} for tool in added.bundle.tools],
        "left_out": [vars(finding) for finding in added.left_out],
        **_encode_offer(added.bundle),
    }


def _encode_offer(bundle: Bundle) -> dict[str, object]:
    """The prompts, resources and templates that `toolwright run` passes on, as JSON."""
    offer = bundle.launch.offer if bundle.launch else Offer()
    return {
        "prompts": [prompt["name"] for prompt in offer.prompts],
        "resources": [resource["uri"] for resource in offer.resources],
        "templates": [template["uriTemplate"] for template in offer.templates],
    }
