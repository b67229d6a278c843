from __future__ import annotations

import pytest

from forge.access import judge


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
    assert judge("GET", "/lamp/{id}", operation_id, "", query) == access


def test_a_query_method_reads_and_an_unknown_one_writes() -> None:
    assert judge("QUERY", "/a", "", "") == "read"
    assert judge("PURGE", "/a", "", "") == "write"
