"""What `doctor` checks: does what is on disk agree with what the registry says, and what runs?"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from orchestrator.authors import KEY
from orchestrator.brokers import SOURCES
from orchestrator.budget import DAY_SECONDS
from orchestrator.clearance import Clearance
from orchestrator.consents import CONFIRM, Consents
from orchestrator.freeze import is_alive
from orchestrator.pin import authority
from orchestrator.settings import Settings
from orchestrator.vaults import open_vault
from registry import catalogue
from registry.errors import KeyChanged, KeyUnusable, NotaryDamaged, PinUnusable, VaultDamaged
from registry.notary import Notary
from registry.signing import fingerprint
from registry.store import Store
from sandbox.docker_engine import Client, connect, list_containers
from sandbox.errors import ComponentMissing, EngineUnavailable
from sandbox.image import base_image


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `hint` says what to do where it is not well."""

    name: str
    verdict: Literal["ok", "warning", "failed"]
    found: str
    hint: str = ""


def check_all(settings: Settings, store: Store) -> tuple[Check, ...]:
    return (
        *_files(settings, store),
        *_rows(store),
        _audit(settings, store),
        *_engine(settings, store),
        _pin(settings),
        *_model(settings, store),
        _grants(settings, store),
    )


def _model(settings: Settings, store: Store) -> Iterator[Check]:
    """Which endpoint writes code, where its key is, and what it cost in the last 24 hours."""
    model = settings.of_model
    if not model.wanted:
        found = "no endpoint is configured; clients write code"
        hint = "OPENAI_MODEL names the model" if model.key else ""
        yield Check("model", "ok", f"{found}. OPENAI_API_KEY is set" if hint else found, hint)
        return
    try:
        kept = open_vault(settings).get(SOURCES, KEY) is not None
    except (VaultDamaged, KeyUnusable) as error:
        yield Check("model", "failed", "the vault cannot be read", str(error))
        return
    asked = f"{model.model or 'its only model'} at {model.url}"
    if not (model.key or kept or model.base_url):
        yield Check("model", "failed", f"{asked} has no key", f"toolwright secret set {KEY}")
        return
    spent = store.spent_since(time.time() - DAY_SECONDS)
    told = f"{asked}: {spent.forges} forges, {spent.tokens} tokens, {spent.cost:g} in 24 h"
    if model.key:
        hint = f"any process of yours can read the key: `toolwright secret set {KEY}`, unset {KEY}"
        yield Check("model", "ok", f"{told}; its key is in the environment", hint)
        return
    yield Check("model", "ok", f"{told}; its key is in the vault" if kept else told)


def _files(settings: Settings, store: Store) -> Iterator[Check]:
    found = catalogue.check(settings.home, store)
    for problem in found:
        verdict: Literal["warning", "failed"] = (
            "warning" if problem.kind in ("changed", "unregistered") else "failed"
        )
        hint = "forge it again, or put the files back"
        yield Check("files", verdict, f"{problem.name}: {problem.kind}: {problem.detail}", hint)
    if not found:
        yield Check("files", "ok", f"{len(store.entries())} servers agree with the registry")


def _rows(store: Store) -> Iterator[Check]:
    alive = {process.id for process in store.processes() if is_alive(process)}
    dead = [process.id for process in store.processes() if process.id not in alive]
    lost = [job.id for job in store.jobs("running") if job.owner not in alive]
    intended = [
        call.id
        for call in store.invocations(limit=1000)
        if call.state == "intended" and call.process not in alive
    ]
    hint = "start `toolwright serve` once: it cleans up after dead processes"
    yield _counted("processes", f"{len(alive)} alive", dead, "dead, not yet swept", hint)
    yield _counted("jobs", "none is orphaned", lost, "orphaned", hint)
    yield _counted("calls", "every intent is settled", intended, "with an unknown outcome", hint)
    frozen = store.freeze_state()
    if frozen.frozen:
        yield Check("freeze", "warning", f"frozen by {frozen.by}", "toolwright unfreeze")


def _counted(name: str, well: str, bad: list[str], what: str, hint: str) -> Check:
    if not bad:
        return Check(name, "ok", well)
    return Check(name, "warning", f"{len(bad)} {what}: {', '.join(bad[:5])}", hint)


def _audit(settings: Settings, store: Store) -> Check:
    broken, rows = Notary(settings.heads).verified(store)
    if broken is None:
        return Check("audit", "ok", f"every chain is whole, {rows} rows")
    return Check(
        "audit",
        "failed",
        f"chain {broken.chain} row {broken.sequence}: {broken.reason}",
        "somebody changed the database, the signed heads or an archive; restore from a backup",
    )


def _engine(settings: Settings, store: Store) -> Iterator[Check]:
    if settings.engine == "wasm":
        yield _component(settings)
        return
    try:
        client = connect()
    except EngineUnavailable as error:
        yield Check("engine", "failed" if settings.engine == "docker" else "warning", str(error))
        if settings.engine == "auto":
            yield _component(settings)
        return
    with closing(client):
        yield Check("engine", "ok", f"Docker {client.version().get('Version', '?')}")
        image = base_image(client)
        if image is None:
            yield Check("base image", "failed", "missing", "toolwright setup")
        else:
            yield Check("base image", "ok", image.reference)
        yield _containers(settings, store, client)


def _component(settings: Settings) -> Check:
    """The embedded engine's component. wasmtime is loaded only where it is needed."""
    wasm = importlib.import_module("sandbox.wasm_component")
    try:
        return Check("WASM engine", "ok", wasm.load_component(settings.cache).digest[:12])
    except ComponentMissing as error:
        return Check("WASM engine", "failed", str(error), "toolwright setup")


def _containers(settings: Settings, store: Store, client: Client) -> Check:
    alive = {process.id for process in store.processes() if is_alive(process)}
    found = list_containers(client, instance=settings.instance)
    strays = [c["Id"][:12] for c in found if c["Labels"].get("toolwright.process") not in alive]
    hint = "start `toolwright serve` once, or `docker rm -f` them"
    return _counted("sandboxes", f"{len(found)} running", strays, "without an owner", hint)


def _grants(settings: Settings, store: Store) -> Check:
    """Whether the person's key signed everything that the rows say was granted."""
    consents = Consents(store, Clearance(store, authority(settings)).key)
    void = consents.void()
    if not void:
        return Check("grants", "ok", f"{len(consents.grants())}, each signed")
    told = ", ".join(
        f"{grant.origin[:80]} ({grant.kind}): {problem}" for grant, problem in void[:5]
    )
    return Check("grants", "warning", f"{len(void)} count for nothing: {told}", CONFIRM)


def _pin(settings: Settings) -> Check:
    """The PIN and its key: the one that was known before, by its fingerprint."""
    if not settings.pin.exists():
        return Check("PIN", "warning", "none is set: nothing can be approved", "toolwright setup")
    try:
        return Check("PIN", "ok", f"set; its key is {fingerprint(authority(settings).key())}")
    except PinUnusable as error:
        return Check("PIN", "warning", str(error))
    except (KeyChanged, NotaryDamaged) as error:
        return Check("PIN", "failed", str(error))
