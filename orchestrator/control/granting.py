"""Sources, hosts, grants and secrets from the page: adding with the PIN that the terminal asks for,
removing as there, where only deleting a secret asks for it.

A secret's value goes from its form into the vault and is in no answer, row or log.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from orchestrator.approvals.accounts import SOURCES
from orchestrator.approvals.declaring import declare_permission, plan_declaration
from orchestrator.approvals.granting import (
    HOST_KINDS,
    add_grant,
    add_source,
    allow_host,
    find_credential_names,
    find_declared_uses,
    remove_grant,
)
from orchestrator.approvals.secrets import hash_uses, remove_secret, store_secret
from orchestrator.approvals.signing_key import open_key, sign_audit
from orchestrator.control.middleware import read_body
from orchestrator.errors import FormInvalid, OrchestratorError
from orchestrator.frontends.instructions import keep_changed_instructions
from orchestrator.settings import Settings
from registry.models import DocumentationSource, GrantKind
from registry.secrets.signing import Signer
from registry.secrets.vault import list_own_secrets, open_vault
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.permissions import parse_permission, parse_permissions
from sandbox.credentials.uses import SecretUse

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}\Z")
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,80}\Z")
MAX_URL = 1_900

Doing = Callable[[Mapping[str, Any], Signer], str]
"""Does what a form asks for with the person's key, and says in words what came of it."""


_GOES_NOWHERE = (
    "It goes nowhere yet: no source sends it. Add a source with a header and this secret's name. A "
    "server's credential is set at the server's name instead."
)


@dataclass(frozen=True)
class GrantDesk:
    """The endpoints of the forms of Sources & secrets."""

    settings: Settings
    store: Store

    async def add_source(self, request: Request) -> Response:
        """Register a source and allow its host: `url`, `pin`, and optionally `header` and `secret`,
        the name of a secret that is sent to that URL's origin as that header.
        """
        return await self._do_with_pin(request, self._add_source)

    async def set_secret(self, request: Request) -> Response:
        """Set a secret: `server` ("sources" for a source's), `name`, `value`, `pin`, and `digest`,
        that of where it goes as it was shown. Its value is never given back.
        """
        return await self._do_with_pin(request, self._set_secret)

    async def allow_host(self, request: Request) -> Response:
        """Allow a `host` (HOST:PORT) to be talked to, also at a private address: with the `pin`."""
        return await self._do_with_pin(request, self._allow_host)

    async def allow_server_host(self, request: Request) -> Response:
        """Let a third-party server connect to a `host` (HOST[:PORT]), at public addresses: with the
        `pin`. What it declares is what a person says of it, so it becomes its next version.
        """
        server = request.path_params["server"]
        return await self._do_with_pin(request, partial(self._allow_server_host, server))

    async def remove_source(self, request: Request) -> Response:
        """Remove the source with this `url`. Needs no PIN: it only takes away."""
        return await self._do(request, self._remove_source)

    async def remove_grant(self, request: Request) -> Response:
        """Revoke the grant of an `origin` and `kind`. Needs no PIN: it only takes away."""
        return await self._do(request, self._remove_grant)

    async def remove_secret(self, request: Request) -> Response:
        """Delete the secret `name` of a `server` ("sources" for a source's): with the `pin`."""
        return await self._do_with_pin(request, self._remove_secret)

    async def _do(self, request: Request, do: Callable[[Mapping[str, Any]], str]) -> Response:
        body = await read_body(request)
        return JSONResponse({"told": await asyncio.to_thread(do, body)})

    async def _do_with_pin(self, request: Request, do: Doing) -> Response:
        body = await read_body(request)
        opened = await asyncio.to_thread(
            open_key, self.settings, str(body.get("pin", "")), time.time(), "page"
        )
        if opened.signer is None:
            return JSONResponse({"error": opened.refused}, 403)
        return JSONResponse({"told": await asyncio.to_thread(do, body, opened.signer)})

    def _add_source(self, body: Mapping[str, Any], signer: Signer) -> str:
        url, header, secret = (str(body.get(each) or "") for each in ("url", "header", "secret"))
        if len(url) > MAX_URL:
            raise FormInvalid({"url": f"it is longer than {MAX_URL} characters."})
        if bool(header) != bool(secret):
            lacking = "secret" if header else "header"
            raise FormInvalid({lacking: "a header and the name of its secret belong together."})
        if header and not HEADER.match(header):
            raise FormInvalid({"header": f"{header[:40]!r} is no name of a header."})
        if header and not NAME.match(secret):
            raise FormInvalid({"secret": f"{secret[:40]!r} is no name of a secret."})
        if secret and open_vault(self.settings).get(SOURCES, secret) is None:
            lacking = f"there is no secret {secret} of sources; set it below first."
            raise FormInvalid({"secret": lacking})
        source = DocumentationSource(url, header, secret)
        add_source(self.store.grants, source, "page", signer)
        keep_changed_instructions(self.settings, self.store)
        return f"{url} is a source; its host may be talked to."

    def _set_secret(self, body: Mapping[str, Any], signer: Signer) -> str:
        server, name = str(body.get("server") or ""), str(body.get("name") or "")
        value = body.get("value")
        if not NAME.match(name) or not isinstance(value, str):
            raise FormInvalid({"name": "a name has letters, digits, '_', '.' and '-'."})
        uses: tuple[SecretUse, ...] = ()
        if server != SOURCES:
            shelf = Bundles(self.settings.home, self.store.servers)
            if name not in find_credential_names(self.store.servers, shelf, server):
                raise OrchestratorError(f"no registered server asks for {server[:40]}.{name}.")
            uses = find_declared_uses(self.store.servers, shelf, server, name)
            if body.get("digest") != hash_uses(uses):
                raise OrchestratorError("it would go elsewhere now than was shown; look again.")
        vault = open_vault(self.settings)
        warning = store_secret(self.store, vault, server, name, value, uses, "page", signer)
        whole = name if server == SOURCES else f"{server}.{name}"
        told = f"{whole} is set. {warning}".strip()
        sent = server != SOURCES or any(
            each.secret == name for each in self.store.grants.find_sources()
        )
        return told if sent else f"{told} {_GOES_NOWHERE}"

    def _allow_host(self, body: Mapping[str, Any], signer: Signer) -> str:
        host = str(body.get("host") or "").strip()
        allow_host(self.store.grants, host, "page", signer)
        keep_changed_instructions(self.settings, self.store)
        return f"{host.lower()} may be talked to."

    def _allow_server_host(self, server: str, body: Mapping[str, Any], signer: Signer) -> str:
        store, shelf = self.store, Bundles(self.settings.home, self.store.servers)
        try:
            wanted = parse_permission(f"network:{str(body.get('host') or '').strip()}")
        except ValueError as error:
            raise FormInvalid({"host": f"{error}."}) from error
        more = plan_declaration(store.servers, shelf, server, wanted)
        if more is not None:
            declare_permission(store.servers, shelf, store.grants, more, "page", signer)
        elif wanted in parse_permissions(store.servers.get(server).permissions):
            add_grant(store.grants, f"{server} {wanted}", "permission", "page", signer)
        else:
            raise OrchestratorError(f"{server} declares by itself what it connects to.")
        keep_changed_instructions(self.settings, store)
        return f"{server} may connect to {wanted.name}."

    def _remove_source(self, body: Mapping[str, Any]) -> str:
        url = str(body.get("url") or "")
        if "://" not in url:
            raise OrchestratorError("the source is named by its URL.")
        removed = remove_grant(self.store.grants, url, "page", time.time())
        return self._tell_removed(url, removed)

    def _remove_grant(self, body: Mapping[str, Any]) -> str:
        origin, kind = str(body.get("origin") or ""), str(body.get("kind") or "")
        grants, now = self.store.grants, time.time()
        if kind not in get_args(GrantKind):
            raise OrchestratorError(f"{kind[:40]!r} is no kind of grant.")
        kinds = HOST_KINDS if kind in HOST_KINDS else (cast(GrantKind, kind),)
        removed = [grants.remove_grant(origin, each, "page", now) for each in kinds]
        return self._tell_removed(origin, any(removed))

    def _tell_removed(self, what: str, removed: bool) -> str:
        sign_audit(self.settings, self.store.audit)
        keep_changed_instructions(self.settings, self.store)
        return f"{what[:300]} is removed." if removed else f"There was no {what[:300]}."

    def _remove_secret(self, body: Mapping[str, Any], _: Signer) -> str:
        server, name = str(body.get("server") or ""), str(body.get("name") or "")
        if (server, name) not in list_own_secrets(open_vault(self.settings)):
            raise OrchestratorError("there is no such secret.")
        remove_secret(self.store, open_vault(self.settings), server, name, "page")
        return f"{name if server == SOURCES else f'{server}.{name}'} is removed."
