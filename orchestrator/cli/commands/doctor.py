"""`toolwright doctor`: check the consistency of an installation."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

import click

from forge.text import render_count
from orchestrator.approvals.differences import find_differences
from orchestrator.approvals.grants import CONFIRM, open_grants, render_flaw
from orchestrator.approvals.sending import build_send_command
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.cli.terminal import FAILED, json_option, print_json, print_table, report_errors
from orchestrator.control.notify.targets import find_locked_targets, list_sealed_targets
from orchestrator.errors import OrchestratorError
from orchestrator.forging.authors.budget import DAY_SECONDS
from orchestrator.gateway.brokers import SOURCES
from orchestrator.processes.control_client import find_control
from orchestrator.processes.liveness import is_alive
from orchestrator.processes.resident import find_resident
from orchestrator.settings import KEY, OPENAI, Settings, describe_kept_engine, load_settings
from registry.approvals.approvals import ApprovalTable
from registry.audit.heads import HeadSigner
from registry.audit.search import AuditTable
from registry.errors import KeyChanged, KeyUnusable, PinUnusable, SignedHeadsDamaged, VaultDamaged
from registry.jobs.model_usage import ModelUsageTable
from registry.processes import ProcessTable
from registry.secrets.signing import compute_fingerprint
from registry.secrets.vault import open_vault
from registry.servers import files
from registry.store import Store
from sandbox.engines.docker.engine import Client, connect_engine, list_containers
from sandbox.engines.docker.image import find_base_image
from sandbox.errors import ComponentMissing, EngineUnavailable

SLOW_SECONDS = 1.0
"""For so long nobody should have to wait for another server's call."""


LOOKED_BACK = 7 * 86_400.0
"""For so long an approval that was never sent is told."""


@dataclass(frozen=True)
class DoctorCheck:
    """The result of one check. `hint` says what to do where it is not ok."""

    name: str
    verdict: Literal["ok", "warning", "failed"]
    found: str
    hint: str = ""


def run_checks(settings: Settings, store: Store) -> tuple[DoctorCheck, ...]:
    return (
        *_check_files(settings, store),
        *_check_rows(store),
        _check_audit(settings, store.audit),
        *_check_engine(settings, store.processes),
        _check_pin_file(settings),
        _check_resident(settings),
        *_check_push(settings),
        *_check_model(settings, store.model_usage),
        *_check_other_endpoints(settings),
        _check_grants(settings, store),
        _check_registry(settings, store),
    )


def _check_model(settings: Settings, model_usage: ModelUsageTable) -> Iterator[DoctorCheck]:
    """The endpoint that writes code, where its key is, and its cost in the last 24 hours."""
    model = settings.of_model
    if not model.wanted:
        found = "no endpoint is configured; clients write code"
        hint = "OPENAI_MODEL names the model" if model.key else ""
        yield DoctorCheck("model", "ok", f"{found}. OPENAI_API_KEY is set" if hint else found, hint)
        return
    try:
        kept = open_vault(settings).get(SOURCES, KEY) is not None
    except (VaultDamaged, KeyUnusable) as error:
        yield DoctorCheck("model", "failed", "the vault cannot be read", str(error))
        return
    asked = f"{model.model or 'its only model'} at {model.url}"
    if not (model.key or kept or model.base_url):
        yield DoctorCheck("model", "failed", f"{asked} has no key", f"toolwright secret set {KEY}")
        return
    spent = model_usage.sum_since(time.time() - DAY_SECONDS)
    told = f"{asked}: {spent.forges} forges, {spent.tokens} tokens, {spent.cost:g} in 24 h"
    if model.key:
        hint = f"any process of yours can read the key: `toolwright secret set {KEY}`, unset {KEY}"
        yield DoctorCheck("model", "ok", f"{told}; its key is in the environment", hint)
        return
    yield DoctorCheck("model", "ok", f"{told}; its key is in the vault" if kept else told)


def _check_other_endpoints(settings: Settings) -> Iterator[DoctorCheck]:
    """The endpoints of single roles, and the ones that wait for a person to allow their hosts."""
    for role, endpoint in settings.of_model.others.items():
        told = f"{role}: {endpoint.model or 'its only model'} at {endpoint.url}"
        if endpoint.key or endpoint.url in (OPENAI, settings.of_model.url):
            yield DoctorCheck("model", "ok", told)
            continue
        try:
            kept = open_vault(settings).get(SOURCES, endpoint.key_name) is not None
        except (VaultDamaged, KeyUnusable):
            return
        hint = "asked once its host is allowed: `toolwright source allow HOST`" if kept else ""
        yield DoctorCheck("model", "ok", told if kept else f"{told}, without a key", hint)


def _check_files(settings: Settings, store: Store) -> Iterator[DoctorCheck]:
    found = files.check_consistency(settings.home, store.servers)
    for problem in found:
        verdict: Literal["warning", "failed"] = (
            "warning" if problem.kind in ("changed", "unregistered") else "failed"
        )
        hint = "forge it again, or put the files back"
        yield DoctorCheck(
            "files", verdict, f"{problem.name}: {problem.kind}: {problem.detail}", hint
        )
    if not found:
        yield DoctorCheck(
            "files",
            "ok",
            f"{render_count(len(store.servers.find()), 'server')}, as the registry has them",
        )


def _check_rows(store: Store) -> Iterator[DoctorCheck]:
    alive = {process.id for process in store.processes.find() if is_alive(process)}
    dead = [process.id for process in store.processes.find() if process.id not in alive]
    lost = [job.id for job in store.jobs.find("running") if job.owner not in alive]
    intended = [
        call.id
        for call in store.calls.find(limit=1000)
        if call.state == "intended" and call.process not in alive
    ]
    hint = "start `toolwright serve` once: it cleans up after dead processes"
    yield _build_count_check("processes", f"{len(alive)} alive", dead, "dead, not yet swept", hint)
    late = [
        f"{process.kind} {process.pid} ({process.stalls} times, up to {process.longest_stall:.1f}s)"
        for process in store.processes.find()
        if process.id in alive and process.longest_stall >= SLOW_SECONDS
    ]
    slow = "other calls waited meanwhile; please report what was called then"
    yield _build_count_check("event loops", "none was held up for long", late, "held up", slow)
    yield _build_count_check("jobs", "none is orphaned", lost, "orphaned", hint)
    yield _build_count_check(
        "calls", "every intent is settled", intended, "with an unknown outcome", hint
    )
    frozen = store.processes.get_freeze()
    yield _check_unsent(store.approvals, frozen.frozen)
    if frozen.frozen:
        told = f"frozen by {frozen.by}{f': {frozen.reason}' if frozen.reason else ''}"
        yield DoctorCheck("freeze", "warning", told, "toolwright unfreeze")


def _check_unsent(approvals: ApprovalTable, frozen: bool) -> DoctorCheck:
    """What a person approved and nobody has sent, or could not send before it expired."""
    unsent = approvals.find_ids("approved")
    since = time.time() - LOOKED_BACK
    lost = [
        each.id
        for each in approvals.find("expired", limit=1000)
        if each.decided_at is not None and each.decided_at > since
    ]
    if not unsent and lost:
        hint = "nothing of it was sent; call the tools again to be asked anew"
        return _build_count_check("approvals", "", lost, "approved and expired unsent", hint)
    if not unsent:
        return DoctorCheck("approvals", "ok", "nothing approved waits to be sent")
    hint = "toolwright unfreeze" if frozen else build_send_command(unsent[0])
    return _build_count_check("approvals", "", list(unsent), "approved and not sent", hint)


def _build_count_check(name: str, well: str, bad: list[str], what: str, hint: str) -> DoctorCheck:
    if not bad:
        return DoctorCheck(name, "ok", well)
    return DoctorCheck(name, "warning", f"{len(bad)} {what}: {', '.join(bad[:5])}", hint)


def _check_audit(settings: Settings, audit: AuditTable) -> DoctorCheck:
    broken, rows = HeadSigner(settings.heads).verify_and_count(audit)
    if broken is None:
        return DoctorCheck("audit", "ok", f"every chain is whole, {rows} rows")
    return DoctorCheck(
        "audit",
        "failed",
        f"chain {broken.chain} row {broken.sequence}: {broken.reason}",
        "somebody changed the database, the signed heads or an archive; restore from a backup",
    )


def _check_engine(settings: Settings, processes: ProcessTable) -> Iterator[DoctorCheck]:
    if settings.kept_engine:
        yield DoctorCheck("engine", "ok", describe_kept_engine(settings))
    if settings.engine == "wasm":
        yield _check_component(settings)
        return
    try:
        client = connect_engine()
    except EngineUnavailable as error:
        yield DoctorCheck(
            "engine", "failed" if settings.engine == "docker" else "warning", str(error)
        )
        if settings.engine == "auto":
            yield _check_component(settings)
        return
    with closing(client):
        yield DoctorCheck("engine", "ok", f"Docker {client.version().get('Version', '?')}")
        image = find_base_image(client)
        if image is None:
            yield DoctorCheck("base image", "failed", "missing", "toolwright setup")
        else:
            yield DoctorCheck("base image", "ok", image.reference)
        yield _check_containers(settings, processes, client)


def _check_component(settings: Settings) -> DoctorCheck:
    """Check the WASM engine's component. wasmtime is loaded only where it is needed."""
    wasm = importlib.import_module("sandbox.engines.wasm.component")
    try:
        return DoctorCheck("WASM engine", "ok", wasm.load_component(settings.cache).digest[:12])
    except ComponentMissing as error:
        return DoctorCheck("WASM engine", "failed", str(error), "toolwright setup")


def _check_containers(settings: Settings, processes: ProcessTable, client: Client) -> DoctorCheck:
    alive = {process.id for process in processes.find() if is_alive(process)}
    found = list_containers(client, instance=settings.instance)
    strays = [c["Id"][:12] for c in found if c["Labels"].get("toolwright.process") not in alive]
    hint = "start `toolwright serve` once, or `docker rm -f` them"
    return _build_count_check(
        "sandboxes", f"{len(found)} running", strays, "without an owner", hint
    )


def _check_grants(settings: Settings, store: Store) -> DoctorCheck:
    """Check that the person's key signed every stored grant."""
    consents = open_grants(SignedPolicy(store, build_authority(settings)))
    void = consents.find_void()
    if not void:
        return DoctorCheck("grants", "ok", f"{len(consents.find_grants())}, each signed")
    told = ", ".join(
        f"{grant.origin[:80]} ({grant.kind}): {render_flaw(flaw)}" for grant, flaw in void[:5]
    )
    return DoctorCheck("grants", "warning", f"{len(void)} count for nothing: {told}", CONFIRM)


def _check_registry(settings: Settings, store: Store) -> DoctorCheck:
    """Check what loosens in the registry against the audit and the person's key."""
    found = find_differences(SignedPolicy(store, build_authority(settings)))
    if not found:
        return DoctorCheck("registry", "ok", "versions, classifications, rules and freeze agree")
    told = "; ".join(found[:5])
    hint = "somebody edited the database; none of it counts. Restore a backup, or forge it again"
    return DoctorCheck(
        "registry", "failed", f"{len(found)} rows differ from the audit: {told}", hint
    )


def _check_pin_file(settings: Settings) -> DoctorCheck:
    """Check the PIN's file, and that its key is the pinned one."""
    if not settings.pin.exists():
        return DoctorCheck(
            "PIN", "warning", "none is set: nothing can be approved", "toolwright setup"
        )
    try:
        return DoctorCheck(
            "PIN",
            "ok",
            f"set; its key is {compute_fingerprint(build_authority(settings).load_key())}",
        )
    except PinUnusable as error:
        return DoctorCheck("PIN", "warning", str(error))
    except (KeyChanged, SignedHeadsDamaged) as error:
        return DoctorCheck("PIN", "failed", str(error))


def _check_resident(settings: Settings) -> DoctorCheck:
    process = find_resident(settings.home)
    told = f"process {process} answers commands" if process else "none runs; commands start one"
    return DoctorCheck("resident process", "ok", told)


def _check_push(settings: Settings) -> Iterator[DoctorCheck]:
    """The targets whose messages carry links, which get none while the control plane is locked."""
    address = find_control(settings)
    try:
        sealed = list_sealed_targets(settings.push)
        until = address.links_until if address else 0.0
        locked = find_locked_targets(settings.push, until, time.time())
    except OrchestratorError as error:
        yield DoctorCheck("push", "failed", str(error))
        return
    names = ", ".join(sealed)
    if locked:
        yield DoctorCheck(
            "push", "warning", f"locked: {names} gets no message", "toolwright push unlock"
        )
    elif sealed:
        yield DoctorCheck("push", "ok", f"unlocked: messages with links go to {names}")


@click.command("doctor")
@json_option
@report_errors
def doctor_command(as_json: bool) -> None:
    """Check files against rows, jobs, the audit log, sandboxes and the engine."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        checks = run_checks(settings, store)
    if as_json:
        print_json([vars(check) for check in checks])
    else:
        print_table(
            ("", "check", "found", "do"),
            ((check.verdict, check.name, check.found, check.hint) for check in checks),
        )
    if any(check.verdict == "failed" for check in checks):
        raise SystemExit(FAILED)
