from __future__ import annotations

import keyword
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.naming import (
    API,
    find_resource,
    name_arguments,
    name_body_argument,
    name_server,
    name_tools,
)
from sandbox.bundle.apispec import Location, Operation, Parameter
from sandbox.bundle.model import NAME

LOCATIONS: list[Location] = ["path", "query", "header", "cookie"]


def _operation(id: str, method: str = "GET", path: str = "/x") -> Operation:
    return Operation(id=id, method=method, path=path, server="http://h", access="read")


def _name(id: str, method: str = "GET", path: str = "/x") -> str:
    return name_tools([_operation(id, method, path)])[id]


@pytest.mark.parametrize(
    ("operation_id", "name"),
    [
        ("listZones", "list_zones"),
        ("PetController_findPets", "pet_find_pets"),
        ("get~get_order", "get_order"),
        ("delete_delete_alert", "delete_alert"),
        ("forget_get_order", "forget_get_order"),
        ("PetController.find_v2", "pet_find_v2"),
        ("Controller_find", "controller_find"),
        ("updateController", "update_controller"),
        ("get-HTTPServer2", "get_http_server2"),
        ("listAPIs", "list_apis"),
        ("api.v1.users.list", "api_v1_users_list"),
        ("crème brûlée", "creme_brulee"),
        ("import", "get_import"),
        ("http", "get_http"),
        ("2fa", "get_2fa"),
        ("read_item_x_get", "read_item"),
    ],
)
def test_a_tool_is_named_after_the_operation_id(operation_id: str, name: str) -> None:
    assert _name(operation_id) == name


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/users", "get_users"),
        ("GET", "/users/{id}", "get_users_by_id"),
        ("POST", "/api/v2/users/{id}/keys", "post_users_keys"),
        ("GET", "/", "get"),
        ("GET", "/{a}/{b}", "get_by_b"),
        ("GET", "/area/{lat}-{lon}", "get_area_by_lat_lon"),
        ("GET", "/Authors({ID})", "get_authors_by_id"),
        ("GET", "/Authors({ID})/books", "get_authors_books"),
    ],
)
def test_without_an_id_it_is_named_after_method_and_path(method: str, path: str, name: str) -> None:
    assert _name(f"{method} {path}", method, path) == name


@pytest.mark.parametrize(
    ("operation_id", "method", "path", "name"),
    [
        ("getpeople", "GET", "/people", "get_people"),
        ("deletepersonItem", "DELETE", "/people/{id}", "delete_person_item"),
        ("postage", "POST", "/postage", "postage"),
        ("getters", "POST", "/x", "getters"),
    ],
)
def test_a_method_that_is_glued_to_a_noun_is_a_word_of_its_own(
    operation_id: str, method: str, path: str, name: str
) -> None:
    assert _name(operation_id, method, path) == name


def test_a_long_name_is_cut_at_a_word_and_marked() -> None:
    name = _name("retrieveTheVeryLongListOfEverythingThatThereIsInTheWorld")
    assert re.fullmatch(r"retrieve_the_very_long_list_of_[0-9a-f]{6}", name)


def test_names_that_collide_do_not_depend_on_the_order() -> None:
    operations = [_operation("a.b", path="/1"), _operation("a_b", path="/2"), _operation("c")]
    names = name_tools(operations)
    assert names == name_tools(operations[::-1])
    assert len(set(names.values())) == 3
    assert names["c"] == "c"


def test_other_operations_do_not_change_a_name() -> None:
    alone = _name("listZones")
    assert (
        name_tools([_operation("x"), _operation("listZones"), _operation("y")])["listZones"]
        == alone
    )


@given(
    st.lists(
        st.tuples(st.text(max_size=60), st.text(max_size=60)), max_size=12, unique_by=lambda x: x[0]
    )
)
def test_tool_names_are_legal_and_unique_for_any_ids_and_paths(
    pairs: list[tuple[str, str]],
) -> None:
    operations = [_operation(id, path="/" + path) for id, path in pairs]
    names = list(name_tools(operations).values())
    assert len(names) == len(operations) == len(set(names))
    for name in names:
        assert NAME.match(name)
        assert not keyword.iskeyword(name)
        assert name not in API


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("pageSize", "pageSize"),
        ("X-Request-ID", "x_request_id"),
        ("filter[name]", "filter_name"),
        ("from", "from_"),
        ("csv", "csv_"),
        ("http", "http_"),
        ("1st", "p_1st"),
        ("é", "e"),
        ("日本", "p"),
        ("__class__", "p__class__"),
        ("$top", "top"),
        ("*", "path"),
    ],
)
def test_an_argument_keeps_its_name_where_python_can(written: str, name: str) -> None:
    assert name_arguments([Parameter(written, "query")]) == [name]


def test_arguments_of_one_name_are_told_apart_by_their_place() -> None:
    parameters = [Parameter("id", location) for location in LOCATIONS]
    assert name_arguments(parameters) == ["id", "id_query", "id_header", "id_cookie"]


def test_the_body_gives_way_to_a_parameter_called_body() -> None:
    assert name_body_argument([]) == "body"
    assert name_body_argument(["body"]) == "request_body"
    assert name_body_argument(["body", "request_body"]) == "request_body_2"


@given(st.lists(st.tuples(st.text(max_size=80), st.sampled_from(LOCATIONS)), max_size=15))
def test_argument_names_are_identifiers_and_unique(written: list[tuple[str, Location]]) -> None:
    names = name_arguments([Parameter(name, location) for name, location in written])
    assert len(set(names)) == len(written)
    for name in names:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name)
        assert not keyword.iskeyword(name)
        assert name not in API


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("PowerDNS Authoritative HTTP API", "power_dns_authoritative_http"),
        ("The Pets", "pets"),
        ("3scale", "api_3scale"),
        ("", "api"),
        ("日本", "api"),
        ("Swagger Petstore - OpenAPI 3.0", "petstore"),
        ("Petstore API v2.1", "petstore"),
        ("Pets (version 3)", "pets"),
        ("Open API Weather 1.0.27", "weather"),
        ("Orders REST API documentation", "orders"),
        ("Area 51 API", "area_51"),
        ("Swagger", "api"),
        ("OpenAPI definition", "api"),
        ("FastAPI", "api"),
    ],
)
def test_a_server_is_named_after_the_title(title: str, name: str) -> None:
    assert name_server(title) == name


@pytest.mark.parametrize(
    ("title", "base_url", "paths", "name"),
    [
        ("FastAPI", "http://127.0.0.1:33001", ["/api/v1/pets", "/pets/{id}", "/x"], "pets"),
        ("127.0.0.1:33001", "http://127.0.0.1:33001", ["/berths"], "berths"),
        ("API", "http://127.0.0.1:33001", ["/a", "/b"], "api"),
        ("API", "http://127.0.0.1:33001", ["/{id}", "/api"], "api"),
        ("OpenAPI definition", "https://api.harbour.example/v1", ["/x"], "harbour"),
        ("Untitled", "http://powerdns:8081", ["/x"], "powerdns"),
        ("api.harbour.example", "https://api.harbour.example", ["/x"], "harbour"),
        ("harbour.io", "http://127.0.0.1:80", ["/a", "/b"], "harbour"),
        ("Pets", "https://api.harbour.example/v1", ["/x"], "pets"),
        ("127.0.0.1", "http://127.0.0.1:8971", ["/graphql"], "graphql_api"),
    ],
)
def test_a_server_whose_title_says_nothing_is_named_after_its_host_or_what_it_is_about(
    title: str, base_url: str, paths: list[str], name: str
) -> None:
    resources = [find_resource(_operation(path, path=path)) for path in paths]
    assert name_server(title, base_url, resources) == name


@given(st.text(max_size=200))
def test_any_title_gives_a_legal_name(title: str) -> None:
    assert NAME.match(name_server(title))
