"""Prefect, an orchestrator of work flows: two OpenAPI 3.1 documents served, of which the one at the
usual place has no base path; reads by POST, values of any type, unicode names, CSV, answers without
a body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.reality.model import Arguments, RealServer, Running, Scenario, Seen
from bench.reality.packages import install_pip
from bench.reality.processes import free_port, running

_API = "/api"
_FLOW = "Hafen ⚓ ä"
_VALUE = {"größe": [1, None, "2"], "an": True}


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    python = install_pip("prefect==3.9.1")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(python), "-m", "prefect", "server", "start", "--no-services", "--no-ui"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    environment = {
        "HOME": str(directory),
        "PREFECT_HOME": str(directory),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    with running(command, f"{url}{_API}/health", directory, environment):
        with httpx.Client(base_url=url, timeout=120.0) as direct:
            # It makes this one at the first request, for ten seconds where the machine is busy.
            direct.get(f"{_API}/openapi.json").raise_for_status()
            _make_flow(direct, "quay", "wet", "small")
            _make_flow(direct, "shed", "dry")
        yield Running(url, directory, f"{url}{_API}/openapi.json")


def _make_flow(direct: httpx.Client, name: str, *tags: str) -> str:
    made = direct.post(f"{_API}/flows/", json={"name": name, "tags": tags})
    return str(made.raise_for_status().json()["id"])


def _make_run(direct: httpx.Client, name: str) -> str:
    body = {"flow_id": _make_flow(direct, "quay"), "name": name}
    return str(direct.post(f"{_API}/flow_runs/", json=body).raise_for_status().json()["id"])


def _prepared(name: str, **more: Any) -> Callable[[httpx.Client], Arguments]:
    """Arguments of an operation on a run that is made for it."""
    return lambda direct: {"id": _make_run(direct, name), **more}


def _find_run(seen: Seen, name: str) -> Any:
    query = {"flow_runs": {"name": {"any_": [name]}}}
    (found,) = seen.direct.post(f"{_API}/flow_runs/filter", json=query).json()
    return found


def _new_run(direct: httpx.Client) -> Arguments:
    state = {"type": "SCHEDULED", "message": "später"}
    body = {"name": "made", "state": state, "parameters": _VALUE, "tags": ["a", "b c"]}
    return {"body": {"flow_id": _make_flow(direct, "quay"), **body}}


def _new_logs(direct: httpx.Client) -> Arguments:
    run = _make_run(direct, "logged")
    lines = [
        {
            "name": "crane",
            "level": 20 + 10 * at,
            "message": f"line {at}, “näh”",
            "timestamp": f"2026-01-0{at + 1}T00:00:00Z",
            "flow_run_id": run,
        }
        for at in range(2)
    ]
    return {"body": lines}


def _logged(direct: httpx.Client) -> Arguments:
    rows = _new_logs(direct)["body"]
    direct.post(f"{_API}/logs/", json=rows).raise_for_status()
    return {"id": rows[0]["flow_run_id"]}


def _doomed(direct: httpx.Client) -> Arguments:
    return {"id": _make_flow(direct, "doomed")}


def _is_healthy(seen: Seen) -> None:
    seen.expect("health", True, seen.body)


def _flow_is_made(seen: Seen) -> None:
    seen.expect("tags", ["x", "y"], seen.get(f"{_API}/flows/name/{_FLOW}")["tags"])
    seen.expect("labels", {"n": 42}, seen.body["labels"])


def _flow_is_read(seen: Seen) -> None:
    seen.expect("flow", seen.get(f"{_API}/flows/name/{_FLOW}"), seen.body)


def _are_filtered(seen: Seen) -> None:
    seen.expect("names", ["quay"], [flow["name"] for flow in seen.body])


def _run_is_made(seen: Seen) -> None:
    run = _find_run(seen, "made")
    seen.expect("parameters", _VALUE, run["parameters"])
    seen.expect("message", "später", run["state"]["message"])
    seen.expect("id", run["id"], seen.body["id"])


def _is_set(seen: Seen) -> None:
    seen.expect("state", "COMPLETED", _find_run(seen, "to end")["state_type"])
    seen.expect("status", "ACCEPT", seen.body["status"])


def _is_renamed(seen: Seen) -> None:
    seen.expect("tags", ["ü"], _find_run(seen, "after")["tags"])


def _lines_are_kept(seen: Seen) -> None:
    query = {"logs": {"level": {"ge_": 30}}}
    found = seen.direct.post(f"{_API}/logs/filter", json=query).json()
    seen.expect("message", "line 1, “näh”", found[0]["message"])


def _is_a_table(seen: Seen) -> None:
    seen.expect("the lines came", True, "line 1, “näh”" in seen.answer.text)


def _value_is_kept(seen: Seen) -> None:
    seen.expect("value", _VALUE, seen.get(f"{_API}/variables/name/anything")["value"])


def _null_is_kept(seen: Seen) -> None:
    kept = seen.get(f"{_API}/variables/name/nothing")
    seen.expect("value", [None, ["t"]], [kept["value"], kept["tags"]])


def _new_null(direct: httpx.Client) -> Arguments:
    row = {"name": "nothing", "value": "something", "tags": ["t"]}
    direct.post(f"{_API}/variables/", json=row).raise_for_status()
    return {"name": "nothing", "body": {"value": None}}


def _is_gone(seen: Seen) -> None:
    answer = seen.direct.get(f"{_API}/flows/name/doomed")
    seen.expect("status", 404, answer.status_code)


def _says_why(seen: Seen) -> None:
    seen.expect("the API's words", True, "422" in seen.answer.text)


SERVER = RealServer(
    name="prefect",
    kind="two OpenAPI 3.1 documents served, one without the base path; reads by POST, any values",
    task="manage flow runs",
    start=_start,
    scenarios=(
        Scenario("a bare boolean", "GET /health", {}, _is_healthy),
        Scenario(
            "a flow with a unicode name is made",
            "POST /flows/",
            {"body": {"name": _FLOW, "tags": ["x", "y"], "labels": {"n": 42}}},
            _flow_is_made,
        ),
        Scenario(
            "a flow is read by its name, through serve",
            "GET /flows/name/{name}",
            {"name": _FLOW},
            _flow_is_read,
            True,
        ),
        Scenario(
            "flows are filtered by POST",
            "POST /flows/filter",
            {"body": {"flows": {"tags": {"all_": ["wet", "small"]}}}},
            _are_filtered,
        ),
        Scenario("a run is made, through serve", "POST /flow_runs/", _new_run, _run_is_made, True),
        Scenario(
            "a run's state is set",
            "POST /flow_runs/{id}/set_state",
            _prepared("to end", body={"state": {"type": "COMPLETED"}, "force": True}),
            _is_set,
        ),
        Scenario(
            "a run is renamed, which is answered without a body",
            "PATCH /flow_runs/{id}",
            _prepared("before", body={"name": "after", "tags": ["ü"]}),
            _is_renamed,
        ),
        Scenario("a list as a body", "POST /logs/", _new_logs, _lines_are_kept),
        Scenario("a CSV table", "GET /flow_runs/{id}/logs/download", _logged, _is_a_table),
        Scenario(
            "a value of any type",
            "POST /variables/",
            {"body": {"name": "anything", "value": _VALUE}},
            _value_is_kept,
        ),
        Scenario("a value becomes null", "PATCH /variables/name/{name}", _new_null, _null_is_kept),
        Scenario("a flow is deleted", "DELETE /flows/{id}", _doomed, _is_gone),
        Scenario(
            "what the API does not take is its own refusal",
            "POST /flows/",
            {"body": {"name": "a/b"}},
            _says_why,
            refused=True,
        ),
    ),
)
