"""The graph: which server asks which host and calls which tool, and which version came of which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.control.drawing import (
    ColumnDrawing,
    GraphNode,
    LaneDrawing,
    LaneStop,
    draw_columns,
    draw_lanes,
)
from orchestrator.control.rooms.place import build_address
from orchestrator.control.texts import ShownText, cut_text
from registry.models import ServerSummary
from registry.servers.lineage import LineageEntry
from registry.store import Store
from sandbox.bundle.permissions import Permission, parse_permissions

MAX_SERVERS = 60
MAX_HOSTS = 60
MAX_VERSIONS = 11
MAX_DEPTH = 3
MAX_NAME = 100
HOSTS = ("network", "tls", "dns", "tcp")


@dataclass(frozen=True)
class ServerLinks:
    """What a server asks outside of itself: hosts, and tools of other servers as `server.tool`."""

    server: ServerSummary
    hosts: tuple[str, ...]
    tools: tuple[str, ...]

    @property
    def callees(self) -> tuple[str, ...]:
        """The names of the servers whose tools it calls."""
        return tuple(dict.fromkeys(tool.partition(".")[0] for tool in self.tools))


@dataclass(frozen=True)
class ServerLink:
    name: ShownText
    address: str


@dataclass(frozen=True)
class LinkLine:
    """What a server asks and calls, and what calls it."""

    server: ServerLink
    trust: str
    hosts: tuple[ShownText, ...]
    tools: tuple[ShownText, ...]
    callers: tuple[ServerLink, ...]


@dataclass(frozen=True)
class LinkGraph:
    """The links of servers as a drawing and as a list; `left` servers stand in the list alone. The
    drawing is None where there is no server.
    """

    drawing: ColumnDrawing | None
    left: int
    lines: tuple[LinkLine, ...]


@dataclass(frozen=True)
class VersionStop:
    version: int
    address: str
    is_current: bool


@dataclass(frozen=True)
class VersionLane:
    """The versions of a server, and what the first of them was made from ("" for nothing)."""

    server: ServerLink
    versions: tuple[VersionStop, ...]
    origin: ShownText


@dataclass(frozen=True)
class VersionLanes:
    """The lanes as a drawing and as a list; None where every server is in its first version."""

    drawing: LaneDrawing | None
    lanes: tuple[VersionLane, ...]


def find_links(store: Store) -> tuple[ServerLinks, ...]:
    """The links of all servers, as their current versions declare them."""
    servers = [each for each in store.servers.find_summaries() if each.state != "archived"]
    permissions = store.servers.find_permissions(each.name for each in servers)
    return tuple(
        _build_links(server, parse_permissions(permissions.get(server.name, ())))
        for server in servers
    )


def _build_links(server: ServerSummary, permissions: Iterable[Permission]) -> ServerLinks:
    given = tuple(permissions)
    hosts = sorted({_name_host(each) for each in given if each.kind in HOSTS})
    tools = sorted({each.name for each in given if each.kind == "call"})
    return ServerLinks(server, tuple(hosts), tuple(tools))


def _name_host(permission: Permission) -> str:
    bare = permission.name.removesuffix(":443")
    return bare if permission.kind == "network" else f"{permission.kind} {permission.name}"


def view_graph(store: Store) -> LinkGraph:
    """The links of servers."""
    links = find_links(store)
    drawing = _draw_links(links[:MAX_SERVERS]) if links else None
    return LinkGraph(drawing, max(0, len(links) - MAX_SERVERS), _list_links(links))


def _draw_links(links: Sequence[ServerLinks]) -> ColumnDrawing:
    depths = compute_depths({each.server.name: each.callees for each in links})
    columns: list[list[GraphNode]] = [[] for _ in range(MAX_DEPTH + 1)]
    for each in links:
        name = each.server.name
        node = GraphNode(f"s:{name}", name, _choose_kind(each), build_address("servers", name))
        columns[MAX_DEPTH - depths[name]].append(node)
    hosts = list(dict.fromkeys(host for each in links for host in each.hosts))[:MAX_HOSTS]
    edges = [
        *((f"s:{each.server.name}", f"s:{name}") for each in links for name in each.callees),
        *((f"s:{each.server.name}", f"h:{host}") for each in links for host in each.hosts),
    ]
    columns.append([GraphNode(f"h:{host}", host, "host") for host in hosts])
    return draw_columns(columns, edges, "Servers and the hosts and servers that they ask")


def _choose_kind(links: ServerLinks) -> str:
    held = links.server.state in ("quarantined", "experimental")
    return links.server.state if held else links.server.standing.level


def compute_depths(callees: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """How many servers deep each one's calls go, at most MAX_DEPTH; 0 for one that calls none."""
    depths = dict.fromkeys(callees, 0)
    for _ in range(MAX_DEPTH):
        depths = {
            name: min(
                MAX_DEPTH, max((depths[each] + 1 for each in named if each in depths), default=0)
            )
            for name, named in callees.items()
        }
    return depths


def _list_links(links: Sequence[ServerLinks]) -> tuple[LinkLine, ...]:
    callers: dict[str, list[str]] = {}
    for each in links:
        for name in each.callees:
            callers.setdefault(name, []).append(each.server.name)
    return tuple(
        LinkLine(
            _link_server(each.server.name),
            _choose_kind(each),
            tuple(cut_text(host, MAX_NAME) for host in each.hosts),
            tuple(cut_text(tool, MAX_NAME) for tool in each.tools),
            tuple(map(_link_server, callers.get(each.server.name, ()))),
        )
        for each in links
    )


def _link_server(name: str) -> ServerLink:
    return ServerLink(cut_text(name), build_address("servers", name))


def view_lineage(store: Store) -> VersionLanes:
    """The versions of each server that has more than one, or that was made from another's."""
    lines = store.servers.find_lineage()
    versions: dict[str, list[LineageEntry]] = {}
    for line in lines:
        versions.setdefault(line.name, []).append(line)
    shown = {
        name: own[-MAX_VERSIONS:]
        for name, own in versions.items()
        if len(own) > 1 or _is_foreign(own[0])
    }
    kept = dict([*shown.items()][:MAX_SERVERS])
    if not kept:
        return VersionLanes(None, ())
    stops = {name: [*map(_build_stop, own)] for name, own in kept.items()}
    drawing = draw_lanes(stops, "Versions of servers and what they were made from")
    return VersionLanes(drawing, tuple(_build_lane(name, own) for name, own in kept.items()))


def _is_foreign(line: LineageEntry) -> bool:
    """Whether a version was made from another server's."""
    return bool(line.parent) and line.parent.partition("@")[0] != line.name


def _build_stop(line: LineageEntry) -> LaneStop:
    parent = line.parent.partition(":")[0] if _is_foreign(line) else ""
    kind = "current" if line.current else ""
    return LaneStop(f"{line.name}@{line.version}", str(line.version), kind, parent)


def _build_lane(name: str, versions: Sequence[LineageEntry]) -> VersionLane:
    server = _link_server(name)
    origins = [line.parent.partition(":")[0] for line in versions if _is_foreign(line)]
    return VersionLane(
        server,
        tuple(
            VersionStop(line.version, f"{server.address}?version={line.version}", line.current)
            for line in versions
        ),
        cut_text(origins[0] if origins else ""),
    )
