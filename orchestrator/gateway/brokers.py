"""Building the brokers of live sessions, from the bundle's policy, the vault's secrets and people's
grants.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from orchestrator.approvals.accounts import CHOSEN, find_secret, split_secret
from orchestrator.approvals.accounts import SOURCES as SOURCES
from orchestrator.approvals.grants import Grants
from orchestrator.gateway.audit_writer import AuditWriter
from orchestrator.gateway.sessions import HeldGrants
from registry.database.canonical import hash_text, to_canonical_json
from registry.models import Grant
from registry.secrets.vault import SEALED, Secret, Vault
from registry.servers.classifications import get_level
from sandbox.broker.broker import Broker
from sandbox.broker.host.local import LocalAccess
from sandbox.broker.host.network import HostAccess, NetworkAccess
from sandbox.broker.sender import ServerPaces
from sandbox.broker.throttle import Throttle
from sandbox.budget import ByteBudget
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.permissions import (
    Permission,
    is_permission_request,
    is_readable,
    parse_permissions,
)
from sandbox.bundle.ratelimit import find_allowed_requests
from sandbox.bundle.target import parse_target
from sandbox.credentials.oauth_secret import identify_account, is_login, sends_token
from sandbox.credentials.source import (
    CredentialCache,
    CredentialSource,
    TokenExchange,
    carry_account,
)
from sandbox.credentials.uses import LentRenewal, LentSecret, SecretUse, goes_in_header
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import CredentialUse, Upstream, WriteMode, WriteStep
from sandbox.wire.policy import (
    Origin,
    build_read_policy,
    build_tool_policy,
    list_token_origins,
    parse_origin,
    parse_template_origin,
)

MAX_KEPT = 64


@dataclass(frozen=True)
class _Given:
    """What sessions with the bundle hold on to while these are the grants that count: `upstream` is
    their way out, `held` changes whenever anything does that a running session would not notice.
    """

    grants: tuple[Grant, ...]
    chosen: Mapping[tuple[str, str], str]
    bundle: Bundle
    upstream: Upstream
    held: HeldGrants


@dataclass(frozen=True)
class BrokerFactory:
    """Makes the brokers of live sessions, one per session."""

    consents: Grants
    vault: Vault
    upstream: Callable[[frozenset[Origin]], Upstream]
    throttle: Throttle
    kill_switch: KillSwitch
    wallet: CredentialCache = field(default_factory=CredentialCache)
    private: tuple[Path, ...] = ()
    footnotes: AuditWriter | None = None
    memory: ByteBudget | None = None
    _known: dict[str, _Given] = field(default_factory=dict)
    _digests: dict[str, tuple[Bundle, str]] = field(default_factory=dict)

    def build_read_broker(self, bundle: Bundle) -> Broker:
        """The broker of a read session: the bundle's read operations, nothing that writes."""
        return Broker(
            build_read_policy(bundle),
            self._load_held_grants(bundle).upstream,
            credentials=self.build_credentials(bundle),
            throttle=self.throttle,
            kill_switch=self.kill_switch,
            local=self._build_host_access(bundle, [t for t in bundle.tools if t.access == "read"]),
            paced=self._build_paces(bundle),
            memory=self.memory,
        )

    def build_tool_broker(self, bundle: Bundle, tool: str, writes: WriteMode) -> Broker:
        """The broker of a single-use session for one tool. Its step names the secrets that it read,
        and it reads no others.
        """
        credentials = self.build_credentials(bundle).hold_secrets()
        return Broker(
            build_tool_policy(bundle, tool),
            self._load_held_grants(bundle).upstream,
            credentials=credentials,
            step=self.build_step(bundle, tool, credentials),
            throttle=self.throttle,
            kill_switch=self.kill_switch,
            writes=writes,
            local=self._build_host_access(bundle, [bundle.get_tool(tool)]),
            paced=self._build_paces(bundle),
            memory=self.memory,
        )

    def _build_paces(self, bundle: Bundle) -> ServerPaces:
        given = self.consents.find_permissions(bundle.name)
        return ServerPaces(bundle.name, bundle.paces, find_allowed_requests(given))

    def build_step(
        self, bundle: Bundle, tool: str, credentials: CredentialSource | None = None
    ) -> WriteStep:
        """The tool with what it runs and what its requests get. Raises KeyError."""
        source = credentials or self.build_credentials(bundle)
        asked = bundle.get_tool(tool)
        origins = filter(None, {parse_template_origin(each.url) for each in asked.requests})
        exchanges = [source.open_exchange(origin) for origin in sorted(origins, key=str)]
        uses = tuple(
            dict.fromkeys(
                self._build_use(bundle, name, source.located.get(name, name), account)
                for exchange in exchanges or [source]
                for name, account in exchange.list_accounts(asked.security).items()
            )
        )
        if bundle.launch is not None:
            uses = tuple(self._list_environment(bundle))
        return WriteStep(bundle.name, bundle.version, self._get_digest(bundle), tool, uses)

    def _list_environment(self, bundle: Bundle) -> Iterator[CredentialUse]:
        """The secrets that a third-party server gets as variables of its environment."""
        granted = self.consents.find_permissions(bundle.name)
        for variable, name in bundle.launch.secrets.items() if bundle.launch else ():
            if granted.get(f"env:{variable}") == name:
                held = self.vault.get(bundle.name, name) or self.vault.get(SOURCES, name)
                account = held.reveal() if held else ""
                yield self._build_use(bundle, f"env:{variable}", name, account)

    def _build_use(self, bundle: Bundle, name: str, secret: str, account: str) -> CredentialUse:
        if not account:
            return CredentialUse(name)
        place = f"{bundle.name}.{secret}"
        if self.vault.get(bundle.name, secret) is None:
            held = (
                (s.secret, self.vault.get(SOURCES, s.secret)) for s in self.consents.find_sources()
            )
            shared = (
                each
                for each, value in held
                if value and account in (value.reveal(), identify_account(value.reveal()))
            )
            place = f"{SOURCES}.{next(shared, secret)}"
        return CredentialUse(name, place, self.vault.mark_text(account))

    def _get_digest(self, bundle: Bundle) -> str:
        """The digest of a bundle, with its tools as people classified them."""
        known = self._digests.get(bundle.name)
        if known is None or known[0] is not bundle:
            while len(self._digests) >= MAX_KEPT:
                del self._digests[next(iter(self._digests))]
            levels = [[tool.name, get_level(tool)] for tool in bundle.tools]
            registered = bundle.registered or bundle.compute_digest()
            digest = hash_text(to_canonical_json([registered, levels]))
            known = self._digests[bundle.name] = (bundle, digest)
        return known[1]

    def _build_host_access(self, bundle: Bundle, tools: Sequence[ToolDefinition]) -> HostAccess:
        """What these tools may ask for besides HTTP."""
        writing = any(tool.access == "write" for tool in tools)

        def granted() -> tuple[Permission, ...]:
            asked = (
                each for tool in tools for each in tool.requests if is_permission_request(each)
            )
            declared = parse_permissions(request.url for request in asked)
            given = self.consents.find_permissions(bundle.name)
            return tuple(each for each in declared if str(each) in given)

        def private() -> frozenset[tuple[str, int]]:
            found = map(parse_target, self.consents.find_private_hosts())
            return frozenset((target.host, target.port) for target in found if target)

        return HostAccess(
            self._build_local_access(bundle, writing), NetworkAccess(granted, private)
        )

    def _build_local_access(self, bundle: Bundle, writing: bool) -> LocalAccess:
        """Files and values of this machine that the bundle declares and a person granted it; where
        its tools take files as arguments, those that a person let it read.
        """

        def granted() -> tuple[Permission, ...]:
            given = self.consents.find_permissions(bundle.name)
            declared = parse_permissions(bundle.permissions)
            allowed = [each for each in declared if str(each) in given]
            if any(tool.files for tool in bundle.tools):
                allowed += filter(is_readable, parse_permissions(given))
            return tuple(each if writing else replace(each, writable=False) for each in allowed)

        def value(name: str) -> str | None:
            secret = self.vault.get(bundle.name, name)
            return secret.reveal() if secret else None

        return LocalAccess(granted, value, self.private)

    def find_held_grants(self, bundle: Bundle) -> HeldGrants:
        """What of its grants a running session holds on to, with the accounts that it goes out
        with: once it differs, a new one is due.
        """
        return self._load_held_grants(bundle).held

    def _locate_secrets(self, bundle: Bundle) -> tuple[tuple[str, str], ...]:
        """The vault's names of the secrets that the bundle's credentials are taken from."""
        return tuple(
            (each.name, find_secret(self.vault, self.consents, bundle.name, each.name))
            for each in bundle.credentials
        )

    def _load_held_grants(self, bundle: Bundle) -> _Given:
        """Worked out again only where anything was granted or taken away since, or this call was
        told to use another account.
        """
        grants, known = self.consents.find_grants(), self._known.get(bundle.name)
        chosen = CHOSEN.get()
        if (
            known is None
            or known.grants is not grants
            or known.chosen != chosen
            or known.bundle is not bundle
        ):
            private = find_granted_private(bundle, self.consents)
            upstream = self.upstream(private)
            held = HeldGrants(self._held(bundle, private), self._locate_secrets(bundle))
            while len(self._known) >= MAX_KEPT:
                del self._known[next(iter(self._known))]
            known = self._known[bundle.name] = _Given(grants, chosen, bundle, upstream, held)
        return known

    def _held(self, bundle: Bundle, private: frozenset[Origin]) -> frozenset[object]:
        if bundle.launch is None:
            return private | {find_allowed_requests(self.consents.find_permissions(bundle.name))}
        named = self.consents.find_private_hosts()
        return private | self.consents.find_permissions(bundle.name).items() | named

    def build_credentials(self, bundle: Bundle) -> CredentialSource:
        """The bundle's credentials: its own secrets, each for where a person let it go; for the
        origins of sources, else, these sources' secrets.
        """
        declared = {credential.name: credential for credential in bundle.credentials}

        # Decided once: what a session sends later is in nobody's context, or in another call's.
        names = dict(self._locate_secrets(bundle))

        def secret(name: str) -> str | None:
            own = self.vault.get(bundle.name, names.get(name, name))
            return own.reveal() if own is not None else None

        def find_obstacle(name: str, use: SecretUse) -> str:
            own = names.get(name, name)
            bound = self.consents.find_secret_uses(bundle.name, own)
            return "" if str(use) in bound else render_unbound(bundle.name, own, use, bound)

        def hold(name: str) -> AbstractContextManager[None]:
            return self.vault.lock_secret(bundle.name, names.get(name, name))

        def again(name: str) -> str:
            return render_login(bundle.name, names.get(name, name))

        def lent(name: str) -> tuple[LentSecret, ...]:
            return self._find_lent_secrets(declared[name]) if name in declared else ()

        def keep(name: str, value: str) -> None:
            self._keep_renewed(bundle.name, names.get(name, name), value)

        def may_ask(origin: Origin) -> bool:
            return f"{origin.host}:{origin.port}" in self.consents.find_hosts()

        def told(asked: TokenExchange) -> None:
            if self.footnotes is not None:
                self.footnotes.add_row("token", bundle.name, vars(asked))

        return CredentialSource(
            declared,
            secret,
            bundle.name,
            self.wallet,
            keep,
            may_ask,
            told=told,
            find_obstacle=find_obstacle,
            lent=lent,
            is_given=self._is_secret_given,
            is_declared=lambda origin: origin in _find_request_origins(bundle),
            located=names,
            hold=hold,
            again=again,
        )

    def _keep_renewed(self, section: str, own: str, value: str) -> None:
        before = self.vault.get(section, own)
        if before is not None:
            # One that was removed in the meantime, as by `logout`, does not come back.
            self.vault.put(section, own, Secret(carry_account(before.reveal(), value)))

    def _is_secret_given(self, origin: Origin) -> bool:
        """Whether a source of an origin has a secret."""
        sources = self.consents.find_sources()
        return any(source.secret and parse_origin(source.url) == origin for source in sources)

    def _find_lent_secrets(self, credential: Credential) -> tuple[LentSecret, ...]:
        """The secrets of the sources whose header is the one that a credential goes into. Of a
        log-in only tokens go to an API, so it is lent to what sends tokens.
        """

        def read(name: str) -> str | None:
            found = self.vault.get(SOURCES, name)
            text = found.reveal() if found is not None else None
            if text is None or sends_token(credential, text) or not is_login(text):
                return text
            return None

        return tuple(
            LentSecret(
                source.secret,
                origin,
                source.header,
                partial(read, source.secret),
                self._build_renewal(source.secret, partial(read, source.secret)),
            )
            for source in self.consents.find_sources()
            if source.secret
            and goes_in_header(credential, source.header)
            and (origin := parse_origin(source.url)) is not None
        )

    def _build_renewal(self, name: str, read: Callable[[], str | None]) -> LentRenewal:
        return LentRenewal(
            (SOURCES, name),
            read,
            partial(self._keep_renewed, SOURCES, name),
            partial(self.vault.lock_secret, SOURCES, name),
            self.consents.find_secret_uses(SOURCES, name),
        )


def _find_request_origins(bundle: Bundle) -> frozenset[Origin]:
    requests = (each for tool in bundle.tools for each in tool.requests)
    return frozenset(filter(None, (parse_template_origin(each.url) for each in requests)))


RESERVED_NAMES = frozenset({SOURCES, SEALED, "push"})
"""The vault's sections that are no server's. No server may have such a name."""


def render_reserved(name: str) -> str:
    """Why no server has one of the reserved names."""
    return f"no server is called {name}: the vault keeps secrets of none under it. Choose another."


def render_unbound(server: str, name: str, use: SecretUse, bound: Collection[str]) -> str:
    """Why a secret does not go where a request would take it, and how a person lets it."""
    held = f"goes to {', '.join(sorted(bound))}" if bound else "was not let go anywhere yet"
    return (
        f"the secret {server}.{name} {held}, and this request would take it to {use}. Nothing was "
        f"sent. If it is to go there, a person says so: `toolwright secret bind {server}.{name}`"
    )


def render_login(server: str, secret: str) -> str:
    """The command that logs in to a server's credential, by the vault's name of its secret."""
    _, account = split_secret(secret)
    return f"toolwright login {server}" + (f" --account {account}" if account else "")


def find_origins(bundle: Bundle) -> frozenset[Origin]:
    """Every origin that the bundle's tools may ask for."""
    urls = [request.url for tool in bundle.tools for request in tool.requests]
    found = {parse_template_origin(url) for url in {*urls, bundle.base_url}}
    return frozenset(origin for origin in found if origin)


def find_granted_private(bundle: Bundle, consents: Grants) -> frozenset[Origin]:
    """The bundle's origins, and those that its secrets go to, that a person allowed though their
    address may be private.
    """
    own = find_origins(bundle)
    asked = list_token_origins(bundle.credentials) | consents.find_use_origins(bundle.name)
    for source in consents.find_sources():
        if source.secret and parse_origin(source.url) in own:
            uses = consents.find_secret_uses(SOURCES, source.secret)
            asked |= set(filter(None, (parse_origin(use.partition(" ")[0]) for use in uses)))
    return frozenset(filter(consents.is_private, own | asked))
