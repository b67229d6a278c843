from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from registry.sessions.kept_results import (
    FORGOTTEN_SECONDS,
    KeepLimits,
    KeptResult,
    MissingResult,
    ResultSource,
)
from registry.store import Store

LIMITS = KeepLimits(seconds=100.0, session_bytes=1_000, all_bytes=2_000)


def result(call: str, value: Any = "x", now: float = 10.0) -> KeptResult:
    sources = (ResultSource("dns", frozenset({"network:api.example:443"})),)
    return KeptResult(0, call, "dns.list_zones", now, now, 0, sources, value)


def keep(store: Store, session: str, call: str, value: Any = "x", now: float = 10.0) -> str:
    kept = store.kept_results.keep(session, result(call, value, now), LIMITS)
    assert kept is not None
    return kept.handle


def found(store: Store, session: str, handle: str, now: float = 11.0) -> Any:
    return store.kept_results.find(session, handle, now)


def test_a_result_comes_back_with_its_value_and_where_it_is_from(store: Store) -> None:
    value = {"items": [1, 2.5, None, True, 10**30, "é\u0000"], "": {}}
    handle = keep(store, "s", "c1", value)
    kept = found(store, "s", handle)
    assert (handle, kept.value, kept.sources) == ("r1", value, result("c1").sources)
    assert kept.expires == 110.0


def test_the_same_call_keeps_its_handle_and_others_get_the_next(store: Store) -> None:
    assert [keep(store, "s", call) for call in ("c1", "c2", "c1")] == ["r1", "r2", "r1"]
    assert keep(store, "other", "c3") == "r1"


def test_another_session_finds_nothing(store: Store) -> None:
    handle = keep(store, "s", "c1")
    for session in ("", "S", "s ", "other"):
        assert found(store, session, handle) == MissingResult(handle, "unknown")
        assert store.kept_results.find_handles(session, 11.0) == {}
    assert store.kept_results.find_handles("s", 11.0) == {"c1": "r1"}


def test_without_a_session_nothing_is_kept(store: Store) -> None:
    assert store.kept_results.keep("", result("c1"), LIMITS) is None


@pytest.mark.parametrize("handle", ["r0", "r01", "r-1", "R1", "1", "", "r1\n", "r" + "9" * 30])
def test_what_is_no_handle_finds_nothing(store: Store, handle: str) -> None:
    keep(store, "s", "c1")
    assert found(store, "s", handle) == MissingResult(handle, "unknown")


def test_what_has_expired_is_told_as_such_and_its_number_is_not_given_again(store: Store) -> None:
    handle = keep(store, "s", "c1", now=10.0)
    assert found(store, "s", handle, now=109.0).value == "x"
    assert found(store, "s", handle, now=110.0) == MissingResult("r1", "expired", "dns.list_zones")
    store.kept_results.drop_expired(200.0)
    assert found(store, "s", handle, now=50.0) == MissingResult("r1", "dropped", "dns.list_zones")
    assert keep(store, "s", "c2", now=200.0) == "r2"
    later = 200.0 + FORGOTTEN_SECONDS + 200.0
    store.kept_results.keep("another", replace(result("c3"), created=later), LIMITS)
    assert found(store, "s", "r2", now=201.0) == MissingResult("r2", "unknown")


def test_the_oldest_of_a_session_make_room_for_its_newest(store: Store) -> None:
    for number in range(3):
        keep(store, "s", f"c{number}", "x" * 400, now=10.0 + number)
    assert found(store, "s", "r1", 15.0) == MissingResult("r1", "dropped", "dns.list_zones")
    assert found(store, "s", "r2", 15.0).value == found(store, "s", "r3", 15.0).value


def test_all_sessions_together_have_a_limit(store: Store) -> None:
    for number, session in enumerate(("a", "b", "c")):
        keep(store, session, "c1", "x" * 900, now=10.0 + number)
    assert found(store, "a", "r1", 15.0) == MissingResult("r1", "dropped", "dns.list_zones")
    assert found(store, "b", "r1", 15.0).value == found(store, "c", "r1", 15.0).value


def test_what_is_larger_than_a_session_may_keep_is_not_kept_and_drops_nothing(
    store: Store,
) -> None:
    keep(store, "s", "c1")
    assert store.kept_results.keep("s", result("c2", "x" * 1_000), LIMITS) is None
    assert found(store, "s", "r1").value == "x"


def test_the_sessions_name_is_not_stored_and_uses_are_in_the_audit(store: Store) -> None:
    kept = store.kept_results.keep("secret name", result("c1"), LIMITS)
    assert kept is not None
    store.kept_results.record_uses("mail.send", ((kept, "$.items[0]"),), 12.0)
    rows = store.audit.find()
    assert [row.kind for row in rows] == ["result.used", "result.kept"]
    assert '"tool":"mail.send"' in rows[0].payload
    assert b"secret name" not in store.path.read_bytes()
