"""What a waiting job needs of a person: how it is told, allowed, and seen to be there.

The values are `registry.records.Job.needs`: `kind`, `what`, `how` to allow it, and of a budget in
`had` how many the job had been given before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.consents import PACKAGE, Consents
from orchestrator.errors import OrchestratorError
from orchestrator.granting import allow_host, allow_package, grant
from registry.jsontext import canonical, sha256
from registry.records import Job
from registry.signing import Signer
from registry.store import Store
from sandbox.errors import BaseImageMissing, ComponentMissing, SandboxError

Needs = Mapping[str, str]
ALLOWED = ("host", "package", "budget", "permission", "tests")
"""The kinds that a person allows for the job itself."""
_MENDING = {
    BaseImageMissing: "toolwright setup --engine-only",
    ComponentMissing: "toolwright setup --engine-only --engine wasm",
}


def host_needs(host: str) -> Needs:
    return {"kind": "host", "what": host, "how": f"toolwright source allow {host}"}


def budget_needs(job: str, line: str, had: int) -> Needs:
    """Another budget for a job that came to a line."""
    return {"kind": "budget", "what": line, "how": _allowing(job), "had": str(had)}


def permission_needs(job: str, server: str, permissions: Iterable[str]) -> Needs:
    """What a server to be asks for that nobody has granted it."""
    what = " ".join(f"{server}:{permission}" for permission in permissions)
    return {"kind": "permission", "what": what, "how": _allowing(job)}


def tests_needs(job: str, names: Iterable[str], suite: str) -> Needs:
    """Other tests than a job had before, for code that passes these."""
    what = ", ".join(names)
    return {"kind": "tests", "what": what, "how": _allowing(job), "suite": sha256(suite)}


def are_allowed(consents: Consents, job: str, suite: str) -> bool:
    """Whether a person allowed a job these tests in place of its earlier ones."""
    return _allows(consents, job, sha256(suite))


def waiting_needs(kind: str, what: str, how: str) -> Needs:
    """What a forge waits for (`orchestrator.errors.ForgeWaits`)."""
    return {"kind": kind, "what": what, "how": how}


def engine_needs(error: SandboxError) -> Needs:
    """What brings back the engine that one of NO_ENGINE says is missing."""
    how = _MENDING.get(type(error), "start Docker")
    return {"kind": "engine", "what": str(error), "how": how}


def engineless(job: str, error: SandboxError) -> str:
    """Why a job waits for an engine, and how it goes on."""
    return f"{error} Then `toolwright jobs {job} --resume` goes on with it."


def unfreeze_needs() -> Needs:
    return {"kind": "unfreeze", "what": "everything is frozen", "how": "toolwright unfreeze"}


def budgets(consents: Consents, job: str) -> int:
    """How many budgets more than the usual one a person gave a job."""
    details = [given.detail for given in consents.grants("budget") if given.origin == job]
    return int(details[0]) if details and details[0].isdecimal() else 0


def ungranted(consents: Consents, server: str, permissions: Iterable[str]) -> tuple[str, ...]:
    """Those permissions that nobody granted the server."""
    given = consents.permissions(server)
    return tuple(permission for permission in permissions if permission not in given)


def is_met(consents: Consents, job: Job) -> bool:
    """Whether a person has allowed by now what a job waits for."""
    needs = job.needs
    if needs.get("kind") == "unfreeze":
        return not consents.store.freeze_state().frozen
    if needs.get("kind") == "host":
        return needs["what"] in consents.hosts()
    if needs.get("kind") == "package":
        return consents.packages().issuperset(_packages(needs))
    if needs.get("kind") == "budget":
        return budgets(consents, job.id) > int(needs["had"])
    if needs.get("kind") == "tests":
        return _allows(consents, job.id, needs["suite"])
    if needs.get("kind") == "permission":
        return not any(ungranted(consents, *wanted) for wanted in _wanted(needs))
    return False


def check_allowed(job: Job) -> None:
    """Raises OrchestratorError where a job waits for nothing that a person could allow."""
    if job.state != "waiting" or job.needs.get("kind") not in ALLOWED:
        raise OrchestratorError(f"job {job.id} waits for nothing that a person could allow.")


def allow(store: Store, consents: Consents, job: Job, by: str, signer: Signer) -> str:
    """Allow what a job waits for; what was allowed, in words. A process that can go on with the job
    takes it up (`is_met`).

    Raises OrchestratorError where it waits for nothing that a person could allow.
    """
    check_allowed(job)
    needs = job.needs
    if needs["kind"] == "host":
        allow_host(store, needs["what"], by, signer)
    elif needs["kind"] == "package":
        for name in _packages(needs):
            allow_package(store, f"{PACKAGE}{name}", by, signer)
    elif needs["kind"] == "budget":
        had = budgets(consents, job.id)
        grant(store, job.id, "budget", by, signer, str(had + 1))
    elif needs["kind"] == "tests":
        grant(store, job.id, "tests", by, signer, needs["suite"])
    else:
        for server, permissions in _wanted(needs):
            for permission in permissions:
                grant(store, f"{server} {permission}", "permission", by, signer)
    return f"{needs['kind']}: {needs['what']}"


def digest_of(needs: Needs) -> str:
    """sha256 of what is needed, in hex: what was shown is what is allowed."""
    return sha256(canonical(dict(needs)))


def _allows(consents: Consents, job: str, suite: str) -> bool:
    return any(g.origin == job and g.detail == suite for g in consents.grants("tests"))


def _wanted(needs: Needs) -> Iterable[tuple[str, tuple[str, ...]]]:
    for text in needs["what"].split():
        server, _, permission = text.partition(":")
        yield server, (permission,)


def _packages(needs: Needs) -> tuple[str, ...]:
    """The normal names of the packages that the command in `how` names."""
    words = needs["how"].split()
    return tuple(word.removeprefix(PACKAGE) for word in words if word.startswith(PACKAGE))


def _allowing(job: str) -> str:
    return f"toolwright jobs {job} --allow"
