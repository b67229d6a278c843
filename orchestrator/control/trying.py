"""Calling a tool from its page: by `toolwright call`, through the same gate as any call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from orchestrator.control.access import ControlAccess
from orchestrator.control.arguments import read_opened
from orchestrator.control.clicks import name_clicks, name_clicks_in
from orchestrator.control.commands import run_command
from orchestrator.control.middleware import read_body
from orchestrator.control.rendering import PartRenderer, Viewer
from orchestrator.control.rooms.calls import show_refused_host
from orchestrator.control.rooms.place import build_address
from orchestrator.control.texts import MAX_VALUE
from orchestrator.control.values import show_answer
from orchestrator.errors import FormInvalid, UnknownTool
from orchestrator.settings import Settings
from registry.errors import RowNotFound
from registry.store import Store
from sandbox.wire.content import join_texts

SECONDS = 90.0
MAX_RUNNING = 4
"""Calls of the page at a time: each is a process."""
TASK = "tried on the control page"
OBJECT = 'The arguments are no JSON object, such as {"name": "example.org"}.'


@dataclass
class ToolTrial:
    """The endpoint that calls a tool with what was typed into its form."""

    settings: Settings
    store: Store
    access: ControlAccess
    running: int = 0

    async def call_tool(self, request: Request) -> Response:
        """Call a tool: `fields`, texts by argument, or `whole`, all arguments as one JSON object.
        Answers with `told`, the `text` of the answer, the same as `html`, and a `link` to the call
        or to the approval.
        """
        server, name = request.path_params["server"], request.path_params["tool"]
        body = await read_body(request)
        entry = await asyncio.to_thread(self.store.servers.get, server)
        try:
            tool = entry.get_tool(name)
        except KeyError:
            raise UnknownTool(f"{server}.{name}") from None
        arguments = read_arguments(tool.definition.get("inputSchema"), body)
        if self.running >= MAX_RUNNING:
            return JSONResponse({"error": "too many calls run from this page; wait for one"}, 429)
        self.running += 1
        try:
            said = await asyncio.to_thread(self._run_call, f"{server}.{name}", arguments)
        finally:
            self.running -= 1
        told = describe_answer(said)
        offered = await asyncio.to_thread(self._offer_host, said, request)
        return JSONResponse({**told, "html": told.get("html", "") + offered} if offered else told)

    def _offer_host(self, said: Mapping[str, Any], request: Request) -> str:
        """The button that allows the host that the call was refused; "" where none was."""
        identity = _get_own_meta(said).get("call")
        try:
            call = self.store.calls.get(str(identity)) if identity else None
        except RowNotFound:
            return ""
        refused = show_refused_host(call, (), "tried") if call else None
        viewer = Viewer(self.access.find_session(request))
        return PartRenderer(viewer).render("calls", "refused_host", refused) if refused else ""

    def _run_call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        # The store knows it, so this is a name of ours and no option of the command.
        words = ("call", tool, "-", "--json", "--from-page", "--task", TASK)
        told = json.dumps(arguments)
        return run_command(self.settings, *words, seconds=SECONDS, told=told)


def read_arguments(schema: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a form. Raises FormInvalid."""
    whole, fields = body.get("whole", ""), body.get("fields", {})
    if isinstance(whole, str) and whole.strip():
        try:
            value = json.loads(whole)
        except (ValueError, RecursionError):
            raise FormInvalid({"whole": OBJECT}) from None
        if not isinstance(value, dict):
            raise FormInvalid({"whole": OBJECT})
        return value
    if not isinstance(fields, dict):
        raise FormInvalid({"whole": OBJECT})
    values, problems = read_opened(schema, fields)
    if problems:
        raise FormInvalid({each.where: each.reason for each in problems})
    return values


def describe_answer(said: Mapping[str, Any]) -> dict[str, Any]:
    """What `toolwright call --json` printed, for the page. That a call ran says `_meta`, which is
    ours: what else stands in an answer is its server's word.
    """
    if "content" not in said:
        return {"error": str(said.get("error", "it ended without an answer"))}
    text = join_texts(said["content"])[:MAX_VALUE]
    result = {name: each for name, each in said.items() if name != "_meta"}
    if said.get("isError"):
        result = name_clicks_in(result)
    html = PartRenderer().render("calls", "answer", show_answer(result, "tried"))
    ours = _get_own_meta(said)
    if call := ours.get("call"):
        failed = bool(said.get("isError"))
        told = "The call failed." if failed else "The call succeeded."
        if rule := ours.get("rule"):
            told = f"Sent at once by your rule {rule}. {told}"
        link = {"href": build_address("calls", str(call)), "label": "The call and its exchanges"}
        return {"told": told, "failed": failed, "text": text, "html": html, "link": link}
    value = said.get("structuredContent") or {}
    if value.get("state") == "pending":
        told = "Nothing was sent: the request waits for your yes under Approvals."
        link = {"href": build_address("approvals"), "label": "Look at the request"}
        return {"told": told, "text": "", "link": link, "approval": value.get("approval", "")}
    return {"told": "The call was refused.", "failed": True, "text": name_clicks(text)}


def _get_own_meta(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the command says of the call itself."""
    return (said.get("_meta") or {}).get("toolwright") or {}
