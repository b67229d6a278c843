"""json-graphql-server: a GraphQL API over tables, at the root of its address; queries with filters,
pages, sorting; mutations, bulk ones too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.reality.model import RealServer, Running, Scenario, Seen
from bench.reality.packages import install_npm
from bench.reality.processes import free_port, running

_PACKAGE = "json-graphql-server"
_DATA = """module.exports = {
  posts: [
    { id: 1, title: "Lorem", views: 254, user_id: 123 },
    { id: 2, title: "Zażółć", views: 65, user_id: 456 },
    { id: 3, title: "Ipsum", views: 76, user_id: 123 },
  ],
  users: [{ id: 123, name: "John" }, { id: 456, name: "Jane" }],
};
"""


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    modules = install_npm(f"{_PACKAGE}@3.3.2")
    port = free_port()
    (directory / "data.js").write_text(_DATA)
    command = ["node", str(modules / _PACKAGE / "bin/json-graphql-server.cjs"), "data.js"]
    environment = {"NODE_HOST": "127.0.0.1", "NODE_PORT": str(port)}
    url = f"http://127.0.0.1:{port}"
    with running(command, url, directory, environment):
        yield Running(url, directory)


def _ask(seen: Seen, query: str) -> Any:
    return seen.direct.post("/", json={"query": query}).json()["data"]


def _field(seen: Seen, name: str) -> Any:
    """What the answer has for a field of the root, however much of the envelope is left."""
    body = seen.body
    while isinstance(body, dict):
        if name in body:
            return body[name]
        if "data" not in body:
            return body
        body = body["data"]
    return body


def _listed(seen: Seen) -> None:
    titles = [post["title"] for post in _field(seen, "allPosts")]
    seen.expect("titles", ["Lorem", "Zażółć", "Ipsum"], titles)


def _one(seen: Seen) -> None:
    seen.expect("title", "Zażółć", _field(seen, "Post")["title"])


def _popular(seen: Seen) -> None:
    seen.expect("ids", ["1"], [str(post["id"]) for post in _field(seen, "allPosts")])


def _second(seen: Seen) -> None:
    posts = _field(seen, "allPosts")
    seen.expect("titles", ["Lorem"], [post["title"] for post in posts])


def _counted(seen: Seen) -> None:
    seen.expect("count", 2, _field(seen, "_allUsersMeta")["count"])


def _created(seen: Seen) -> None:
    titles = [post["title"] for post in _ask(seen, "{allPosts{title}}")["allPosts"]]
    seen.expect("kept", True, "Fähre ⛴" in titles)


def _updated(seen: Seen) -> None:
    post = _ask(seen, '{Post(id: "3"){title views}}')["Post"]
    seen.expect("post", {"title": "Ipsum", "views": 77}, post)


def _bulk(seen: Seen) -> None:
    names = [user["name"] for user in _ask(seen, "{allUsers{name}}")["allUsers"]]
    seen.expect("names", ["Ada", "Grace"], names[-2:])


def _removed(seen: Seen) -> None:
    ids = [str(post["id"]) for post in _ask(seen, "{allPosts{id}}")["allPosts"]]
    seen.expect("gone", False, "1" in ids)


SERVER = RealServer(
    name="graphql",
    kind="GraphQL at the root; filters, pages, bulk mutations",
    task="read and write posts and users",
    start=_start,
    sources=("{host}", "{url}"),
    scenarios=(
        Scenario("all posts", "all_posts", {}, _listed),
        Scenario("one post", "post", {"id": "2"}, _one, through_serve=True),
        Scenario("a filter", "all_posts", {"filter": {"views_gt": 100}}, _popular),
        Scenario(
            "a sorted page",
            "all_posts",
            {"page": 1, "perPage": 2, "sortField": "views", "sortOrder": "asc"},
            _second,
        ),
        Scenario("a count", "all_users_meta", {}, _counted),
        Scenario(
            "a post is made",
            "create_post",
            {"title": "Fähre ⛴", "views": 1, "user_id": "123"},
            _created,
        ),
        Scenario("one field is changed", "update_post", {"id": "3", "views": 77}, _updated, True),
        Scenario(
            "many are made at once",
            "create_many_user",
            {"data": [{"name": "Ada"}, {"name": "Grace"}]},
            _bulk,
        ),
        Scenario("a post is removed", "remove_post", {"id": "1"}, _removed),
    ),
)
