from __future__ import annotations

import pytest

from forge.readers.access import classify_access


@pytest.mark.parametrize(
    ("query", "operation_id", "access"),
    [
        ([("muted", "")], "", "write"),
        ([("turn", "")], "relay", "write"),
        ([("enabled", "")], "", "write"),
        ([("enabled", "")], "listUsers", "read"),
        ([("archived", "")], "", "read"),
        ([("action", "delete")], "", "write"),
        ([("action", "list")], "", "read"),
        ([("cmd", "")], "", "write"),
        ([("cmd", "")], "getState", "read"),
        ([("limit", ""), ("since", "")], "", "read"),
        ([("sortSet", "")], "", "read"),
    ],
)
def test_a_query_that_says_what_is_done_makes_a_get_a_write(
    query: list[tuple[str, str]], operation_id: str, access: str
) -> None:
    assert classify_access("GET", "/lamp/{id}", operation_id, "", query) == access


@pytest.mark.parametrize(
    ("path", "operation_id", "summary", "access"),
    [
        # Shapes of published descriptions: PowerDNS, petstore, Slack, Docker, Jira, Sentry, Box.
        ("/servers/{id}/zones/{zone}/notify", "", "", "read"),
        ("/servers/{id}/cache/flush", "", "", "write"),
        ("/user/logout", "logoutUser", "Logs out current session", "write"),
        ("/user/login", "loginUser", "Logs user into the system", "write"),
        ("/chat.postMessage", "", "", "write"),
        ("/users.setPresence", "", "", "write"),
        ("/users.list", "", "", "read"),
        ("/conversations.history", "conversations_history", "", "read"),
        ("/feed.json", "", "", "read"),
        (
            "/containers/{id}/attach/ws",
            "ContainerAttachWebsocket",
            "Attach to a container",
            "write",
        ),
        ("/containers/{id}/export", "ContainerExport", "Export a container", "read"),
        ("/denials", "DenyAssignments_ListForGroup", "", "read"),
        ("/orders/findbyextref/{ref}", "OrderApi_GetByExtRef", "", "read"),
        ("/changes/startPageToken", "drive.changes.getStartPageToken", "", "read"),
        ("/jobs/{name}:complete", "jobs.projects.complete", "", "write"),
        ("/", "GET_DeleteTagsOfResource", "", "write"),
        ("/all", "Users_DeleteAll", "", "write"),
        ("/things", "Things_List", "Delete all things", "write"),
        ("/order-types/{id}", "orderTypesOne", "Get Order Type", "read"),
        ("/order-types/{id}", "orderTypesOne", "", "write"),
        ("/items/delete/{id}", "", "", "write"),
        ("/items/delete/{id}", "getDeletedItem", "", "read"),
        ("/send-reminder", "", "", "write"),
        ("/send_email/{address}", "", "", "write"),
        ("/cart/add/{sku}", "", "", "write"),
        ("/deleted-items", "", "", "read"),
        ("/start-dates", "listStartDates", "", "read"),
        ("/mailing/unsubscribe/{token}", "", "", "write"),
        ("/runs/{id}", "getRun", "Retrieve a run", "read"),
        ("/runs/{id}/rerun", "", "Permanently deletes the run", "write"),
        ("/things", "", "Bulk delete things", "write"),
        ("/things", "", "Softly lit rooms", "read"),
        ("/things", "", "Early access", "read"),
        ("/ping", "ping", "Ping", "read"),
        ("/devices/{id}/reboot", "", "", "write"),
        ("/door/{id}/unlock", "", "", "write"),
        ("/swarm/unlockkey", "SwarmUnlockkey", "Get the unlock key", "read"),
        ("/oauth/token/revoke", "", "", "write"),
        ("/reports/generate", "", "", "write"),
        ("/subscription/confirm/{token}", "", "", "write"),
        ("/appendText", "appendText", "", "write"),
        ("/prependText", "prependText", "", "write"),
        ("/queue/{id}", "getAndDelete", "", "write"),
        ("/queue/{id}", "Queue_GetAndDelete", "", "write"),
        ("/users/{id}", "users.getOrCreate", "", "write"),
        ("/users/{id}", "", "Gets or creates a user", "write"),
        ("/users/{id}", "getNameAndAddress", "Get name and delete date", "read"),
    ],
)
def test_a_get_is_judged_by_its_words(
    path: str, operation_id: str, summary: str, access: str
) -> None:
    assert classify_access("GET", path, operation_id, summary) == access


@pytest.mark.parametrize(
    ("path", "operation_id", "access"),
    [
        # springfox, Etherpad
        ("/setText", "setTextUsingGET", "write"),
        ("/movePad", "movePadUsingGET", "write"),
        ("/users/remove", "deleteUserUsingGET_1", "write"),
        ("/getText", "getTextUsingGET", "read"),
        ("/users", "usersUsingHEAD", "read"),
        # FastAPI
        ("/api/reset", "reset_all_api_reset_get", "write"),
        ("/jobs/{id}/again", "restart_job_jobs__id__again_get", "write"),
        ("/jobs/{id}", "read_job_jobs__id__get", "read"),
        ("/jobs/", "jobs_jobs__get", "read"),
        ("/lamp", "setLampGET", "write"),
        # The method's word that is all of the id, or is the author's own verb.
        ("/lamp", "GET", "read"),
        ("/items/delete/{id}", "deleted_items_get", "read"),
        ("/messages", "users.messages.get", "read"),
    ],
)
def test_the_method_at_the_end_of_an_id_says_nothing(
    path: str, operation_id: str, access: str
) -> None:
    assert classify_access("GET", path, operation_id, "") == access


@pytest.mark.parametrize(
    ("query", "operation_id", "access"),
    [
        ("delete", "getThing", "write"),
        ("reset", "listThings", "write"),
        ("clear", "", "write"),
        ("disable", "", "write"),
        ("disable", "getThing", "read"),
        ("start", "", "read"),
        ("expire", "", "read"),
        ("order", "", "read"),
        ("refresh", "", "read"),
        ("deleted", "listThings", "read"),
        ("delete_after", "", "read"),
    ],
)
def test_a_parameter_that_is_a_verb_makes_a_get_act(
    query: str, operation_id: str, access: str
) -> None:
    assert classify_access("GET", "/things", operation_id, "", [(query, "")]) == access


@pytest.mark.parametrize(
    ("successes", "access"),
    [
        (["201"], "write"),
        (["202", "201"], "write"),
        (["200", "202"], "read"),
        (["204"], "read"),
        ([], "read"),
    ],
)
def test_a_get_that_answers_that_something_was_made_is_a_write(
    successes: list[str], access: str
) -> None:
    assert classify_access("GET", "/exports", "", "", (), successes) == access
    assert classify_access("GET", "/exports", "getExport", "", (), successes) == "read"


@pytest.mark.parametrize("path", ["/search", "/graphql", "/query", "/items/_search", "/lookup"])
def test_a_post_is_a_write_until_a_person_says_otherwise(path: str) -> None:
    assert classify_access("POST", path, "searchItems", "Search for items") == "write"


def test_a_query_method_reads_and_an_unknown_one_writes() -> None:
    assert classify_access("QUERY", "/a", "", "") == "read"
    assert classify_access("PURGE", "/a", "", "") == "write"
