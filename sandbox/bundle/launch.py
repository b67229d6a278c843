"""Launch description of a third-party server, which its bundle holds instead of generated code.

Third-party MCP servers are registered as bundles too. Their `launch.json` says what to start and
which tool definitions it must list; their `server.py` is empty, or the script itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sandbox.bundle.offer import Offer, parse_offer

Way = Literal["image", "script", "process"]
AUTHOR = "third_party"
"""The author in the provenance of third-party code."""


@dataclass(frozen=True)
class RemoteTool:
    """A tool that models call `name` and its server calls `original`.

    `checked` says whether its results have an output schema to be checked against.
    """

    name: str
    original: str
    checked: bool = False


@dataclass(frozen=True)
class LockedPackage:
    """One package, with the digest of the fetched file (`sha256:…` or npm's `sha512-…`)."""

    name: str
    version: str
    digest: str


@dataclass(frozen=True)
class Launch:
    """The command to start, and the definitions that the server must list.

    `way` is `image` (a container of `image`), `script` (a container of our base image that runs the
    bundle's `server.py`) or `process` (a plain child process of ours: no cage). `image` is the id
    of its content. An empty `entrypoint` or `command` leaves the image's own. `environment` holds
    plain settings, `secrets` names of the vault by variable. `pins` are the sha256 of all that it
    lists, by its own names, those among them that cannot be used; `offer` is what else it lists.
    """

    way: Way
    image: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[RemoteTool, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    lock: tuple[LockedPackage, ...] = ()
    offer: Offer = field(default_factory=Offer)

    def get_tool(self, name: str) -> RemoteTool:
        """The tool that we call by that name. Raises KeyError."""
        for tool in self.tools:
            if tool.name == name:
                return tool
        raise KeyError(name)


def to_json(launch: Launch) -> dict[str, Any]:
    """The launch as plain JSON values, the content of a bundle's `launch.json`."""
    made = asdict(launch)
    # What offers nothing but tools says nothing of it, so that it keeps its digest.
    return made if launch.offer != Offer() else {k: v for k, v in made.items() if k != "offer"}


def from_json(data: Mapping[str, Any]) -> Launch:
    """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else."""
    if data["way"] not in ("image", "script", "process"):
        raise ValueError(f"{data['way']!r} is no way to start a server")
    return Launch(
        way=data["way"],
        image=str(data["image"]),
        entrypoint=tuple(map(str, data["entrypoint"])),
        command=tuple(map(str, data["command"])),
        environment={str(key): str(value) for key, value in data["environment"].items()},
        secrets={str(key): str(value) for key, value in data["secrets"].items()},
        pins={str(key): str(value) for key, value in data["pins"].items()},
        tools=tuple(RemoteTool(**tool) for tool in data["tools"]),
        lock=tuple(LockedPackage(**package) for package in data["lock"]),
        offer=parse_offer(data["offer"]) if "offer" in data else Offer(),
    )
