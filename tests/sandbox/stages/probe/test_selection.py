"""Which operations a probe may ask: names refuse, and allow nothing that a class forbids."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sandbox.bundle.apispec import MediaType, Operation, Parameter, RequestBody
from sandbox.bundle.model import ToolDefinition
from sandbox.stages.probe.selection import find_objection

TOOL = ToolDefinition("tool", "Reads.", {"type": "object"}, {"type": "object"}, "read")
ALLOWED = [
    ("/pets", "listPets", "List all pets"),
    ("/pets/{petId}", "getPetById", "Find a pet"),
    ("/pet/findByStatus", "findPetsByStatus", "Finds Pets by status"),
    ("/store/inventory", "getInventory", "Returns pet inventories"),
    ("/store/order/{orderId}", "getOrderById", "Find an order"),
    ("/orders", "list_orders", "List orders"),
    ("/servers", "listServers", "List all servers"),
    ("/servers/{server_id}/zones", "listZones", "List all Zones in a server"),
    ("/servers/{server_id}/statistics", "getStats", "Query statistics"),
    ("/servers/{server_id}/config", "getConfig", "Returns all settings of a server"),
    ("/api/2.0/mlflow/experiments/search", "searchExperiments", "Search experiments"),
    ("/api/2.0/mlflow/runs/{run_id}", "getRun", "Get a run"),
    ("/dags", "get_dags", "List DAGs"),
    ("/dags/{dag_id}/dagRuns", "get_dag_runs", "List DAG runs"),
    ("/version", "version", "Get the version"),
    ("/healthz", "health", ""),
    ("/", "read_root", "Root"),
    ("/repos/{owner}/{repo}/pulls", "listPulls", "List pull requests"),
    ("/repos/{owner}/{repo}/releases", "listReleases", "List releases"),
    ("/boards", "boards", "All boards"),
    ("/keywords", "listKeywords", "List keywords"),
    ("/monkeys", "listMonkeys", "List monkeys"),
    ("/donkeys/{id}", "getDonkey", ""),
    ("/schedules", "getSchedules", "List schedules"),
    ("/labels", "GET /labels", ""),
    ("/api/v1/targets", "targets", "Targets"),
    ("/users", "listUsers", "Get all users"),
    ("/users/{id}/posts", "getUserPosts", "Get posts of a user"),
    ("/books/{isbn}", "getBook", ""),
    ("/notes", "listNotes", "List notes"),
    ("/runs", "runs", "Runs"),
    ("/workflows", "listWorkflows", ""),
    ("/projects/{projectKey}", "getProject", "Get a project"),
]
REFUSED = [
    ("/logout", "getLogout", "Get logged out"),
    ("/user/logOut", "user", ""),
    ("/session/sign-out", "session", ""),
    ("/items/{id}/delete", "getItem", "Get an item"),
    ("/delete/{id}", "getIt", ""),
    ("/items/%64elete", "getItem", ""),
    ("/items/dElEtE", "getItem", ""),
    ("/items/\uff44\uff45\uff4c\uff45\uff54\uff45", "getItem", ""),
    ("/items/deleteAll", "getItems", ""),
    ("/items/deleteall", "getItems", ""),
    ("/items/löschen", "getItems", ""),
    ("/items/{id}:cancel", "getItem", ""),
    ("/items", "deleteItems", "List items"),
    ("/items", "items_purge", "List items"),
    ("/items", "getItems", "Deletes all items"),
    ("/items", "getItems", "Get items and restart the server"),
    ("/reset", "reset", ""),
    ("/db/reset", "getDb", "Get the database"),
    ("/passwordreset", "get", ""),
    ("/restart", "getStatus", ""),
    ("/jobs/{id}/run", "getJob", ""),
    ("/run/{id}", "getJob", ""),
    ("/jobs/{id}/trigger", "getJob", ""),
    ("/build/trigger-all", "getBuild", ""),
    ("/execute", "query", ""),
    ("/mail/send", "getMail", ""),
    ("/orders/{id}/cancel", "getOrder", ""),
    ("/grants/{id}/revoke", "getGrant", ""),
    ("/newsletter/unsubscribe", "getNewsletter", ""),
    ("/tokens", "listTokens", "List tokens"),
    ("/user/token", "getUser", ""),
    ("/secrets", "listSecrets", "List secrets"),
    ("/user/keys", "listKeys", "List keys"),
    ("/servers/{server_id}/tsigkeys", "listTSIGKeys", "Get all keys"),
    ("/zones/{id}/cryptokeys", "listCryptokeys", "Get all keys"),
    ("/api-key", "get", ""),
    ("/users/{id}/password", "getUser", ""),
    ("/me", "getPasswords", ""),
    ("/credentials", "listCredentials", ""),
    ("/oauth/authorize", "authorize", ""),
    ("/login", "getLogin", ""),
    ("/zones/{id}/export", "getZone", ""),
    ("/data/dump", "getData", ""),
    ("/backups", "listBackups", ""),
    ("/files/{id}/download", "getFile", ""),
    ("/alerts/{id}/ack", "getAlert", ""),
    ("/alerts/acknowledge", "getAlert", ""),
    ("/billing/plans", "listPlans", ""),
    ("/payments", "listPayments", "List payments"),
    ("/invoices", "listInvoices", ""),
    ("/admin/users", "listUsers", ""),
    ("/queue/messages/receive", "getMessages", ""),
    ("/queue/pop", "getMessage", ""),
    ("/events/stream", "getEvents", ""),
    ("/debug/pprof", "getProfile", ""),
    ("/invites/{token}", "getInvite", ""),
    ("/reports/{session}", "getReport", ""),
    ("/proxy/{id}", "getPage", ""),
    ("/verify", "getMail", ""),
    ("/start", "getState", ""),
]


def asked(
    path: str = "/items", operation: str = "listItems", summary: str = "", **more: Any
) -> str:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{") and part.endswith("}")]
    parameters = tuple(Parameter(name, "path", required=True) for name in names)
    given = {"method": "GET", "access": "read", "parameters": parameters, **more}
    return find_objection(
        TOOL,
        Operation(operation, path=path, server="https://api.test", summary=summary, **given),
    )


@pytest.mark.parametrize(("path", "operation", "summary"), ALLOWED)
def test_a_plain_read_may_be_asked(path: str, operation: str, summary: str) -> None:
    assert asked(path, operation, summary) == ""


@pytest.mark.parametrize(("path", "operation", "summary"), REFUSED)
def test_what_acts_or_gives_away_by_its_name_is_not_asked(
    path: str, operation: str, summary: str
) -> None:
    assert asked(path, operation, summary) != ""


@pytest.mark.parametrize("tag", ["admin", "Billing", "API keys", "tokens", "backup", "Payments"])
def test_a_tag_refuses(tag: str) -> None:
    assert asked(tags=(tag,)) != ""


@pytest.mark.parametrize(
    ("server", "is_asked"),
    [
        ("https://api.test/v1", True),
        ("https://admin.test", True),
        ("https://api.test/ghost/api/admin", False),
        ("https://api.test/billing/v2", False),
    ],
)
def test_the_path_of_the_base_url_counts_and_its_host_does_not(server: str, is_asked: bool) -> None:
    operation = Operation("listItems", "GET", "/items", server, "read")
    assert (find_objection(TOOL, operation) == "") == is_asked


@pytest.mark.parametrize(
    "more",
    [
        {"method": "POST"},
        {"method": "DELETE"},
        {"method": "HEAD"},
        {"access": "write"},
        {"document": "query { items }"},
        {"body": RequestBody((MediaType("application/json"),))},
        {"parameters": (Parameter("q", "query", required=True),)},
        {"parameters": (Parameter("X-Tenant", "header", required=True),)},
    ],
)
def test_no_name_makes_asked_what_the_class_forbids(more: dict[str, Any]) -> None:
    names = {"summary": "List safe items (read-only)", "tags": ("safe", "read-only")}
    assert asked("/items", "getSafeReadOnlyItems", **{**names, **more}) != ""
    assert asked("/items", "getSafeReadOnlyItems", **names) == ""


def test_a_tool_that_writes_is_not_asked_whatever_its_operation_is() -> None:
    operation = Operation("listItems", "GET", "/items", "https://api.test", "read")
    assert find_objection(TOOL, operation) == ""
    assert find_objection(replace(TOOL, access="write"), operation) != ""
    assert find_objection(replace(TOOL, destructive=True), operation) != ""
