"""`toolwright login`, `logout` and `accounts`: tokens that a person gets by logging in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

import click

from orchestrator.approvals.accounts import check_account, name_secret
from orchestrator.approvals.granting import add_source
from orchestrator.approvals.text import escape_line
from orchestrator.cli.terminal import (
    ask_pin,
    json_option,
    out,
    pin_option,
    print_done,
    print_json,
    print_table,
    print_text,
    report_errors,
    run_coroutine,
    tell_beside,
)
from orchestrator.context import Context, open_context
from orchestrator.errors import LoginFailed, OrchestratorError
from orchestrator.forging.fetch import GuardedFetch
from orchestrator.gateway.brokers import SOURCES
from orchestrator.job_requests import check_address
from orchestrator.logins.exchange import Client, TokenClient
from orchestrator.logins.flow import LoginResult, LoginTerminal, find_browser, log_in, open_browser
from orchestrator.logins.keeping import (
    choose_one,
    find_accounts,
    find_known_client,
    forget_login,
    keep_login,
    list_new_hosts,
    set_default,
)
from orchestrator.logins.metadata import AuthorizationServer
from orchestrator.logins.plan import (
    LoginOrder,
    LoginPlan,
    choose_credential,
    describe_plan,
    list_login_uses,
    plan_login,
)
from orchestrator.logins.requests import LoginNetwork
from orchestrator.logins.sources import find_logged_in, find_target
from orchestrator.settings import Settings, load_settings
from registry.models import DocumentationSource
from registry.secrets.signing import Signer
from registry.secrets.vault import Vault
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle
from sandbox.credentials.oauth_secret import OAuthSecret, parse_oauth_secret
from sandbox.credentials.uses import TOKEN_REQUEST, SecretUse
from sandbox.wire.policy import parse_origin


@dataclass(frozen=True)
class _Words:
    """What was typed."""

    target: str
    account: str
    issuer: str
    client_id: str
    client_secret: str
    scopes: tuple[str, ...]
    parameters: tuple[str, ...]
    device: bool
    browser: bool
    default: bool
    port: int


@click.command("login")
@click.argument("target", metavar="SERVER[.CREDENTIAL]|URL")
@click.option("--account", default="", help="Keep it as the account of this name, beside others.")
@click.option("--default", is_flag=True, help="Calls that name no account go out with this one.")
@click.option("--device", is_flag=True, help="By a code that is typed in on any device.")
@click.option("--no-browser", is_flag=True, help="Open no browser: print the address only.")
@click.option(
    "--issuer", default="", metavar="URL", help="The authorization server, if you know it."
)
@click.option("--client-id", default="", help="The client that you registered there.")
@click.option("--client-secret", default="", metavar="@NAME", help="Its secret, from the vault.")
@click.option("--scope", "scopes", multiple=True, help="Ask for this scope instead; several times.")
@click.option(
    "--param",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Add this to the log-in page.",
)
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The redirect's port.")
@pin_option
@json_option
@report_errors
def login_command(
    target: str,
    account: str,
    default: bool,
    device: bool,
    no_browser: bool,
    issuer: str,
    client_id: str,
    client_secret: str,
    scopes: tuple[str, ...],
    parameters: tuple[str, ...],
    port: int,
    pin_file: Path | None,
    as_json: bool,
) -> None:
    """Log in to the API of SERVER, or to the API at URL before a server is forged from it (OAuth 2,
    OpenID Connect), with your browser, or by a code where there is none. Shows which hosts take
    part and what is asked for, and asks for the PIN; keeps the tokens in the vault, for this API
    alone, and renews them.
    """
    words = _Words(
        target,
        check_account(account),
        issuer,
        client_id,
        client_secret,
        scopes,
        parameters,
        device,
        not no_browser,
        default,
        port,
    )
    with tell_beside(as_json):
        run_coroutine(_run_login(load_settings(), words, pin_file))
    if as_json:
        print_json({"target": target, "account": words.account, "logged_in": True})


@asynccontextmanager
async def _open_stoppable(settings: Settings) -> AsyncIterator[Context]:
    """The installation, of which a freeze stops all that would be sent, the search for what
    describes an API included.
    """
    async with open_context(settings) as ground:
        with ground.pulse.watch_signals():
            yield ground


async def _ask_pin(settings: Settings, pin_file: Path | None) -> Signer:
    signer = ask_pin(settings, pin_file)
    # The event loop stood still meanwhile: it has to hear of a freeze before anything is sent.
    await asyncio.sleep(0)
    return signer


async def _run_login(settings: Settings, words: _Words, pin_file: Path | None) -> None:
    async with _open_stoppable(settings) as ground:
        order = await _read_order(ground, words)
        async with _open_network(ground, order.server, order.credential.name) as network:
            plan = await plan_login(order, network.search)
            new = list_new_hosts(plan, ground.consents)
            for label, text in describe_plan(plan, new):
                _show_line(f"{label:<17}{text}")
            signer = await _ask_pin(settings, pin_file)
            network.allow(plan.list_origins())
            terminal = LoginTerminal(
                _show_line,
                open_browser if words.browser else lambda url: False,
                not words.browser or find_browser(),
            )
            result = await log_in(plan, network.ask, terminal, words.device, words.port)
        _keep(ground, plan, result, signer, default=words.default)
        print_text(f"{order.target} is logged in{_name_account(order.account)}.")
        if order.source is not None:
            print_text(f"Next: toolwright forge {quote(order.source.url)}")


def _show_line(text: str) -> None:
    """Print a line as it is, however long: what is broken up cannot be copied."""
    click.echo(escape_line(text), file=out.file)


def _keep(
    ground: Context, plan: LoginPlan, result: LoginResult, signer: Signer, *, default: bool
) -> None:
    keep_login(ground.store, ground.vault, ground.consents, plan, result, signer, default=default)
    if not result.tokens.refresh_token:
        print_text("No refresh token was given: once it has expired, log in again.", "yellow")


async def _read_order(ground: Context, words: _Words) -> LoginOrder:
    server, _, name = words.target.partition(".")
    if "://" in words.target:
        return await _read_source_order(ground, words)
    if server == SOURCES or "/" in words.target:
        raise OrchestratorError(
            f"{words.target} is no registered server. Of an API without one, give the URL: "
            "`toolwright login https://…`."
        )
    bundle = _load_bundle(ground, server)
    credential = choose_credential(bundle, name)
    uses = list_login_uses(bundle, credential)
    return _build_order(ground, words, server, credential, bundle.base_url, uses)


async def _read_source_order(ground: Context, words: _Words) -> LoginOrder:
    """The order of a log-in to an API that no server is registered for."""
    check_address(words.target, "URL")
    if words.account or words.default:
        raise OrchestratorError(
            "a URL has one log-in. Accounts are a server's: forge it, then `toolwright login "
            "SERVER --account NAME`."
        )
    origin = parse_origin(words.target)
    private = frozenset({origin} if origin and ground.consents.is_private(origin) else ())
    fetch = GuardedFetch(ground.network.open_upstream(private), ground.kill_switch)
    target = await find_target(words.target, ground.consents.find_sources(), fetch)
    goes_to = parse_origin(target.base_url)
    uses = (SecretUse(goes_to, "bearer"),) if goes_to else ()
    order = _build_order(ground, words, SOURCES, target.credential, target.base_url, uses)
    return replace(order, source=target.source)


def _build_order(
    ground: Context,
    words: _Words,
    server: str,
    credential: Credential,
    base_url: str,
    uses: tuple[SecretUse, ...],
) -> LoginOrder:
    return LoginOrder(
        server,
        credential,
        base_url,
        uses,
        words.account,
        words.issuer,
        _read_client(ground.vault, words, server, credential.name),
        words.scopes,
        tuple(map(_parse_parameter, words.parameters)),
    )


def _read_client(vault: Vault, words: _Words, server: str, credential: str) -> Client | None:
    if not words.client_id:
        if words.client_secret:
            raise OrchestratorError("--client-secret goes with --client-id.")
        return find_known_client(vault, server, credential, words.account)
    if not words.client_secret:
        return Client(words.client_id)
    name = words.client_secret.removeprefix("@")
    section, dot, own = name.partition(".")
    held = vault.get(section, own) if dot else vault.get(SOURCES, name)
    if not words.client_secret.startswith("@") or held is None:
        raise OrchestratorError(
            f"--client-secret takes @NAME of a secret that is set: `toolwright secret set {name}`."
        )
    return Client(words.client_id, held.reveal())


def _parse_parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise OrchestratorError(f"--param {text[:60]!r} is not of the form NAME=VALUE.")
    return name, value


def _load_bundle(ground: Context, server: str) -> Bundle:
    return ground.shelf.load_bundle(ground.store.servers.get(server))


@asynccontextmanager
async def _open_network(
    ground: Context, server: str, credential: str
) -> AsyncIterator[LoginNetwork]:
    """The network of one log-in, whose requests are rows of the audit."""
    network = LoginNetwork(
        ground.consents,
        ground.kill_switch,
        lambda asked: ground.footnotes.add_row("token", server, vars(asked)),
        credential,
    )
    try:
        yield network
    finally:
        await network.close()


@click.command("logout")
@click.argument("server", metavar="SERVER|URL")
@click.option("--account", default=None, help="Which account, where there are several.")
@pin_option
@json_option
@report_errors
def logout_command(server: str, account: str | None, pin_file: Path | None, as_json: bool) -> None:
    """Log out of the API of SERVER or at URL: revoke the tokens where its authorization server does
    that, and remove them. Asks for the PIN.
    """
    with tell_beside(as_json):
        problem = run_coroutine(_run_logout(load_settings(), server, account, pin_file))
    if as_json:
        print_json({"target": server, "logged_in": False, "problem": problem})


async def _run_logout(
    settings: Settings, server: str, account: str | None, pin_file: Path | None
) -> str:
    """Log out; why the tokens were not revoked, "" where they were."""
    async with _open_stoppable(settings) as ground:
        if "://" in server:
            return await _log_out_source(ground, server, settings, pin_file)
        held = find_accounts(ground.vault, server, _list_credentials(ground, server))
        found = {each: secret for each, secret in held.items() if secret.is_login}
        credential, own = choose_one(found, server, account)
        await _ask_pin(settings, pin_file)
        problem = await _revoke(ground, server, credential, own, found[credential, own])
        forget_login(ground.store, ground.vault, ground.consents, server, credential, own)
    _tell_logged_out(f"{server} is logged out{_name_account(own)}.", problem)
    return problem


async def _log_out_source(
    ground: Context, url: str, settings: Settings, pin_file: Path | None
) -> str:
    """Log out of the API at a URL. The source stays, without the log-in."""
    source = find_logged_in(url, ground.consents.find_sources())
    held = ground.vault.get(SOURCES, source.secret)
    signer = await _ask_pin(settings, pin_file)
    login = parse_oauth_secret(held.reveal() if held else "", None)
    problem = await _revoke(ground, SOURCES, source.secret, "", login)
    forget_login(ground.store, ground.vault, ground.consents, SOURCES, source.secret, "")
    add_source(ground.store.grants, DocumentationSource(source.url), "terminal", signer)
    _tell_logged_out(f"{source.url} is logged out.", problem)
    return problem


def _tell_logged_out(text: str, problem: str) -> None:
    print_text(text)
    if problem:
        print_text(f"{problem}. The site of the service may list it among your apps.", "yellow")


async def _revoke(
    ground: Context, server: str, credential: str, account: str, held: OAuthSecret
) -> str:
    """Revoke an account's tokens; why that could not be done, "" where it was."""
    name = name_secret(credential, account)
    origin = parse_origin(held.revocation_url)
    if origin is None:
        return "This authorization server does not revoke tokens"
    bound = ground.consents.find_secret_uses(server, name)
    if str(SecretUse(origin, TOKEN_REQUEST)) not in bound:
        return f"The tokens were not let go to {origin}, so they were not revoked"
    client = Client(held.client_id, held.client_secret, held.client_auth or "basic")
    asked = AuthorizationServer(revocation_url=held.revocation_url)
    async with _open_network(ground, server, credential) as network:
        network.allow((origin,))
        revoking = TokenClient(asked, client, network.ask)
        try:
            if held.refresh_token:
                await revoking.revoke_token(held.refresh_token, "refresh_token")
            await revoking.revoke_token(held.access_token, "access_token")
        except LoginFailed as error:
            return f"The tokens could not be revoked ({error})"
    return ""


@click.command("accounts")
@click.argument("server")
@click.option("--use", "account", help="Calls that name no account go out with this one.")
@pin_option
@json_option
@report_errors
def accounts_command(
    server: str, account: str | None, pin_file: Path | None, as_json: bool
) -> None:
    """List the accounts of SERVER, or choose the default one with the PIN. `toolwright call` and
    `run` take another with `--account NAME`.
    """
    run_coroutine(_run_accounts(load_settings(), server, account, pin_file, as_json))


async def _run_accounts(
    settings: Settings, server: str, account: str | None, pin_file: Path | None, as_json: bool
) -> None:
    async with open_context(settings) as ground:
        found = find_accounts(ground.vault, server, _list_credentials(ground, server))
        if account is not None:
            credential, own = choose_one(found, server, account)
            signer = ask_pin(settings, pin_file)
            set_default(ground.store, server, credential, own, signer)
            told = f"{server} is called{_name_account(own)}."
            print_done(as_json, told, server=server, credential=credential, account=own)
            return
        rows = [
            {
                "credential": credential,
                "account": own,
                "default": ground.consents.find_account(server, credential) == own,
                "login": held.token_url if held.is_login else "",
                "renews": held.is_login and bool(held.refresh_token),
            }
            for (credential, own), held in found.items()
        ]
    if as_json:
        print_json(rows)
        return
    heads = ("credential", "account", "default", "login", "renews")
    print_table(heads, ([row[head] for head in heads] for row in rows))


def _list_credentials(ground: Context, server: str) -> tuple[str, ...]:
    return tuple(each.name for each in _load_bundle(ground, server).credentials)


def _name_account(account: str) -> str:
    return f" as {account}" if account else ""
