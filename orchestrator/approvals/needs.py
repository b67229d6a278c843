"""Needs of waiting jobs (hosts, packages, budgets, permissions, tests): building them, allowing
them, and checking whether they are met.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard, assert_never

from orchestrator.approvals.granting import (
    add_grant,
    allow_file,
    allow_host,
    allow_package,
    allow_public_host,
)
from orchestrator.approvals.grants import PACKAGE, Grants
from orchestrator.approvals.services import choose_service, describe_service, describe_services
from orchestrator.errors import ForgeWaits, OrchestratorError
from registry.approvals.grants import GrantTable
from registry.database.canonical import hash_text, to_canonical_json
from registry.errors import RowNotFound
from registry.models import Job
from registry.needs import (
    AllowedNeed,
    AnswerNeed,
    BudgetLine,
    BudgetNeed,
    CredentialNeed,
    DecisionNeed,
    EngineNeed,
    FileNeed,
    HostNeed,
    Need,
    OrderNeed,
    PackageNeed,
    PermissionNeed,
    ServiceNeed,
    SingleNeed,
    SourceNeed,
    SuccessionNeed,
    TestsNeed,
    UnfreezeNeed,
    list_parts,
    need_json,
)
from registry.secrets.signing import Signer
from sandbox.errors import BaseImageMissing, ComponentMissing, SandboxError

UNDECIDED = frozenset({"pending", "approved", "claimed", "sending"})
"""States of an approval whose write may still be sent."""
_MENDING = {
    "docker": "start Docker",
    "base_image": "toolwright setup --engine-only",
    "component": "toolwright setup --engine-only --engine wasm",
}


def engine_need(error: SandboxError) -> EngineNeed:
    """What one of NO_ENGINE says is missing."""
    if isinstance(error, BaseImageMissing):
        return EngineNeed("base_image", str(error))
    if isinstance(error, ComponentMissing):
        return EngineNeed("component", str(error))
    return EngineNeed("docker", str(error))


def suite_need(names: Iterable[str], suite: str, changes: Iterable[str] = ()) -> TestsNeed:
    """Other tests than a job had before, for code that passes these."""
    return TestsNeed(tuple(names), hash_text(suite), tuple(changes))


def forge_waits(need: AllowedNeed | CredentialNeed) -> ForgeWaits:
    """The error of a forge that cannot go on before a person gave it what it needs."""
    return ForgeWaits(need, describe_wait("", need))


def describe_wait(job: str, need: AllowedNeed | CredentialNeed) -> str:
    """What a person has to say yes to before a job goes on, and how."""
    if isinstance(need, SuccessionNeed):
        return describe_succession_wait(job, need)
    if isinstance(need, SourceNeed):
        return describe_source_wait(job, need)
    if isinstance(need, ServiceNeed):
        return describe_services(job, need)
    if isinstance(need, CredentialNeed):
        return f"a credential is missing: {render_way(need, job)}"
    hosts = [part.host for part in list_parts(need) if isinstance(part, HostNeed)]
    what = f"requests to {', '.join(hosts)}" if hosts else "it"
    if isinstance(need, OrderNeed):
        what = f"all of it at once: {render_need(need)}"
    others = [part.instead for part in list_parts(need) if isinstance(part, HostNeed)]
    way = "; ".join([render_way(need, job), *filter(None, others)])
    return f"first a person has to allow {what}: {way}"


def render_need(need: Need) -> str:
    """What is needed, in words."""
    match need:
        case HostNeed():
            return need.host
        case FileNeed():
            return need.path
        case CredentialNeed():
            return need.url
        case PackageNeed():
            return ", ".join(need.specs)
        case BudgetNeed():
            return render_line(need.line)
        case PermissionNeed():
            return " ".join(f"{need.server}:{permission}" for permission in need.permissions)
        case TestsNeed():
            return ", ".join(need.names)
        case SuccessionNeed():
            return f"{need.server} version {need.version + 1}: {'; '.join(need.changes)}"
        case SourceNeed():
            return need.url
        case ServiceNeed():
            return ", or ".join(f"{each.title} ({each.provider})" for each in need.services)
        case OrderNeed():
            return "; ".join(f"{part.kind} {render_need(part)}" for part in need.parts)
        case EngineNeed():
            return need.reason
        case UnfreezeNeed():
            return "everything is frozen"
        case AnswerNeed():
            return need.text
        case DecisionNeed():
            return f"a decision on approval {need.approval}"
        case _:
            assert_never(need)


def list_need_items(need: AllowedNeed) -> tuple[str, ...]:
    """All that a person allows with it, an item each; nothing is left out or cut."""
    match need:
        case OrderNeed():
            return tuple(
                f"{part.kind}: {item}" for part in need.parts for item in list_need_items(part)
            )
        case HostNeed():
            return (need.host, *filter(None, [need.instead]))
        case FileNeed():
            return (need.path,)
        case PackageNeed():
            return (*(f"{PACKAGE}{name}" for name in need.names), f"for {', '.join(need.specs)}")
        case BudgetNeed():
            return (render_line(need.line),)
        case PermissionNeed():
            return tuple(f"{need.server}: {permission}" for permission in need.permissions)
        case TestsNeed():
            return (*need.names, *need.changes, f"tests with the sha256 {need.suite}")
        case SuccessionNeed():
            return (f"{need.server} version {need.version + 1}", *need.changes)
        case SourceNeed():
            return (f"the registered source {need.url}", _describe_fit(need))
        case ServiceNeed():
            return tuple(
                f"{number}. {describe_service(each)}"
                for number, each in enumerate(need.services, 1)
            )
        case _:
            assert_never(need)


def render_way(need: Need, job: str) -> str:
    """How a person gives a job what it needs: a command, or a sentence that has one. Without a job
    there is only what allows the thing itself.
    """
    match need:
        case HostNeed() | FileNeed() | PackageNeed():
            own = render_own_way(need)
            return f"toolwright allow {job} (or {own})" if job else own
        case CredentialNeed():
            return need.question
        case OrderNeed() if not job:
            # Hosts, where an edit or a new credential asks for several.
            single = (p for p in need.parts if isinstance(p, HostNeed | FileNeed | PackageNeed))
            return "; ".join(map(render_own_way, single))
        case (
            BudgetNeed()
            | PermissionNeed()
            | TestsNeed()
            | SuccessionNeed()
            | SourceNeed()
            | ServiceNeed()
            | OrderNeed()
        ):
            return f"toolwright allow {job}"
        case EngineNeed():
            return _MENDING[need.missing]
        case UnfreezeNeed():
            return "toolwright unfreeze"
        case AnswerNeed():
            return f"toolwright do --run {job} --answer JSON"
        case DecisionNeed():
            return f"toolwright approve {need.approval}"
        case _:
            assert_never(need)


def render_own_way(need: HostNeed | FileNeed | PackageNeed) -> str:
    """The command that allows a thing for every job."""
    match need:
        case HostNeed():
            return f"toolwright source allow {need.host}"
        case FileNeed():
            return f"toolwright source allow {shlex.quote(need.path)}"
        case PackageNeed():
            names = " ".join(f"{PACKAGE}{name}" for name in need.names)
            return f"toolwright source allow {names} (of PyPI: {', '.join(need.specs)})"


def render_line(line: BudgetLine) -> str:
    """A line of the budget that a question would cross, in words."""
    if line.unit == "forges":
        return f"{line.wanted - 1:.0f} forges had a model write in 24 hours, {line.most:.0f} may"
    of = "this job" if line.of == "job" else f"a {line.of}"
    could = f"the next answer could bring {of} to {line.wanted:.6g} {line.unit}"
    return f"{could}, the most is {line.most:.6g}"


def describe_engine_wait(job: str, need: EngineNeed) -> str:
    """Why a job waits for an engine, and how it goes on."""
    return f"{need.reason} Then `toolwright jobs {job} --resume` goes on with it."


def describe_succession_wait(job: str, need: SuccessionNeed) -> str:
    """What a next version would change, and how it takes the registered one's place."""
    return (
        f"{need.server} is registered. Its next version was not tried yet, because it would do "
        f"other things: {'; '.join(need.changes)}. Give another name. If it is to take the place "
        f"of version {need.version}, a person has to allow that: {render_way(need, job)}"
    )


def describe_source_wait(job: str, need: SourceNeed) -> str:
    """Why a job asks whether a registered source is meant, and how it goes on either way."""
    return (
        f"the task names no API. The registered source {need.url} may be meant, because "
        f"{_describe_fit(need)}; nothing was asked of it yet. If it is: "
        f"`{render_way(need, job)}`, or `forge` again with it as the source. If not: `forge` again "
        "with the path or URL of the API's description as the source, or with the source `none`, "
        "where no API is needed."
    )


def show_need(need: Need | None, job: str) -> dict[str, Any]:
    """A job's need as clients and scripts see it: its fields, `what` is needed and `how` it is
    given, and where a person can allow it, the `digest` that a decision names; {} for none.
    """
    if need is None:
        return {}
    told = {**need_json(need), "what": render_need(need), "how": render_way(need, job)}
    return {**told, "digest": hash_needs(need)} if is_allowable(need) else told


def hash_needs(need: Need | None) -> str:
    """sha256 of what is needed, in hex: what was shown is what is allowed."""
    return hash_text(to_canonical_json(need_json(need)))


def are_tests_allowed(consents: Grants, job: str, suite: str) -> bool:
    """Whether a person allowed a job these tests in place of its earlier ones."""
    return _is_suite_allowed(consents, job, hash_text(suite))


def count_budgets(consents: Grants, job: str) -> int:
    """How many budgets more than the usual one a person gave a job."""
    details = [given.detail for given in consents.find_grants("budget") if given.origin == job]
    return int(details[0]) if details and details[0].isdecimal() else 0


def find_ungranted(consents: Grants, server: str, permissions: Iterable[str]) -> tuple[str, ...]:
    """Those permissions that nobody granted the server."""
    given = consents.find_permissions(server)
    return tuple(permission for permission in permissions if permission not in given)


def is_met(consents: Grants, job: Job, mark: Callable[[str], str] = lambda url: "") -> bool:
    """Whether a person has given by now what a job waits for. `mark` returns what stands for the
    credentials that sources have for a URL now, "" for none.
    """
    match job.needs:
        case OrderNeed(parts):
            return all(is_met(consents, replace(job, needs=part)) for part in parts)
        case CredentialNeed(url, _, had):
            return mark(url) not in ("", had)
        case UnfreezeNeed():
            return not consents.store.processes.get_freeze().frozen
        case DecisionNeed(approval):
            return _is_decided(consents, approval)
        case HostNeed(host):
            return host in consents.find_hosts()
        case FileNeed(path):
            return consents.is_readable(path)
        case PackageNeed(names):
            return consents.find_packages().issuperset(names)
        case BudgetNeed(_, had):
            return count_budgets(consents, job.id) > had
        case TestsNeed(_, suite):
            return _is_suite_allowed(consents, job.id, suite)
        case SuccessionNeed():
            return consents.is_succession_allowed(job.needs.server, job.needs.digest)
        case SourceNeed(url, _, task):
            return consents.is_source_meant(task, url)
        case ServiceNeed(task, services):
            return any(consents.is_source_meant(task, each.location) for each in services)
        case PermissionNeed(server, permissions):
            return not find_ungranted(consents, server, permissions)
        case _:
            return False


def _is_decided(consents: Grants, approval: str) -> bool:
    """Whether nothing more becomes of an approval, also where it is gone."""
    try:
        return consents.store.approvals.get(approval).state not in UNDECIDED
    except RowNotFound:
        return True


def is_allowable(need: Need | None) -> TypeGuard[AllowedNeed]:
    """Whether a person can allow it for the job itself."""
    return isinstance(need, AllowedNeed)


def names_file(need: AllowedNeed) -> bool:
    """Whether a path of this machine is asked for, which is allowed at the terminal alone: never
    over HTTP, and so not on the page.
    """
    return any(isinstance(part, FileNeed) for part in list_parts(need))


def check_allowable(job: Job) -> AllowedNeed:
    """What a job waits for. Raises OrchestratorError where a person could not allow it."""
    if job.state != "waiting" or not is_allowable(job.needs):
        raise OrchestratorError(f"job {job.id} waits for nothing that a person could allow.")
    return job.needs


def allow_needs(
    grants: GrantTable,
    consents: Grants,
    job: Job,
    by: str,
    signer: Signer,
    private: Iterable[Path] | None = None,
    choice: int = 0,
) -> str:
    """Allow all that a job waits for; what was allowed, in words. A process that can go on with the
    job takes it up (`is_met`). `private` are Toolwright's own files, which no path may lead to;
    None where no path is allowed at all. `choice` is the number of the service that is meant, 0
    for the first.

    Raises OrchestratorError where it waits for nothing that a person could allow, for a path that
    is not allowed here, or for a choice that was not made, PathRefused; nothing was allowed then.
    """
    need = check_allowable(job)
    if isinstance(need, ServiceNeed):
        need = choose_service(need, choice, job.id)
    elif choice:
        raise OrchestratorError(f"job {job.id} offers no choice: `toolwright allow {job.id}`.")
    if private is None and names_file(need):
        raise OrchestratorError(
            f"a path of this machine is allowed at the terminal alone: `toolwright allow {job.id}`."
        )
    parts = list_parts(need)
    # A path may be refused, so it comes before what is granted.
    for part in sorted(parts, key=lambda part: not isinstance(part, FileNeed)):
        _allow_part(grants, consents, job, part, by, signer, private or ())
    return f"{need.kind}: {render_need(need)}"


def _allow_part(
    grants: GrantTable,
    consents: Grants,
    job: Job,
    need: SingleNeed,
    by: str,
    signer: Signer,
    private: Iterable[Path],
) -> None:
    match need:
        case HostNeed(host):
            allow_host(grants, host, by, signer)
        case FileNeed(path):
            allow_file(grants, path, by, signer, private)
        case PackageNeed(names):
            for name in names:
                allow_package(grants, name, by, signer)
        case BudgetNeed():
            had = count_budgets(consents, job.id)
            add_grant(grants, job.id, "budget", by, signer, str(had + 1))
        case TestsNeed(_, suite):
            add_grant(grants, job.id, "tests", by, signer, suite)
        case SuccessionNeed():
            add_grant(grants, need.server, "succession", by, signer, need.digest)
        case SourceNeed(url, _, task):
            add_grant(grants, task, "meant", by, signer, url)
        case ServiceNeed(task, services):
            # In this order: a job would go on before its hosts are there.
            for host in services[0].hosts:
                allow_public_host(grants, host, by, signer)
            add_grant(grants, task, "meant", by, signer, services[0].location)
        case PermissionNeed(server, permissions):
            for permission in permissions:
                add_grant(grants, f"{server} {permission}", "permission", by, signer)
        case _:
            assert_never(need)


def _describe_fit(need: SourceNeed) -> str:
    named = ", ".join(map(repr, need.words))
    return f"the task says {named}" if named else "what is known of it fits the task"


def _is_suite_allowed(consents: Grants, job: str, suite: str) -> bool:
    return any(g.origin == job and g.detail == suite for g in consents.find_grants("tests"))
