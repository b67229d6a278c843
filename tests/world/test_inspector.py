"""The Inspector runs against a server of a few lines."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.world.inspector import inspect

SERVER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    answers = {
        "initialize": {
            "protocolVersion": asked.get("params", {}).get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tiny", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "hi", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": os.environ.get("WORD")}]},
    }
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        known = answers.get(asked["method"])
        answer |= {"result": known} if known else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps(answer), flush=True)
"""


def test_it_lists_and_calls_a_stdio_server(node_modules: Path) -> None:
    command = [sys.executable, "-c", SERVER]
    listed = inspect(command, "tools/list")
    assert (listed.returncode, json.loads(listed.stdout)["tools"][0]["name"]) == (0, "hi")
    called = inspect(command, "tools/call", "--tool-name", "hi", env={"WORD": "hello"})
    assert (called.returncode, json.loads(called.stdout)["content"][0]["text"]) == (0, "hello")
    assert inspect(command, "tools/call", "--tool-name", "absent").returncode == 5
