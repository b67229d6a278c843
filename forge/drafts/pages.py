"""The pages of a brief: what an author of each kind of server has to know, each told once.

`compute` is for what only computes, `http` for code that asks an API which the draft itself
declares, `composite` for code that runs tools of other servers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, get_args

from forge.drafts.examples import (
    COMPOSITE_EXAMPLE,
    COMPOSITE_TASK,
    EXAMPLE,
    EXAMPLE_TASK,
    HTTP_EXAMPLE,
    HTTP_TASK,
)
from sandbox.bundle.modules import MODULES

Kind = Literal["compute", "http", "composite"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_MODULES = ", ".join(sorted(MODULES))

_HAND_IN = """# What to hand in
All at once, or first the specification (everything but `code`): it is kept, or you are told which
test proves nothing. What a later draft leaves out stays. At most eight drafts.
- tools: [{name, description, input_schema, output_schema}], JSON Schema 2020-12, both "type":
  "object" at the root. What a tool reaches beside its arguments stands in its `permissions`, and a
  person grants each: "env:NAME" for toolwright.environment, "fs:/path:ro" for toolwright.files (not
  /etc, /proc, dot-files of a home), "clock", "random",
  %(further)s.
- cases: [{tool, arguments, result}] or [{tool, arguments, failure: "tool"}], worked out from the
  task, not from your code. Arguments of a case with a failure pass input_schema too: what that
  refuses is tried without you.
- tests: a pytest file as text that imports the functions from `server` and calls them with named
  arguments: plain `test_…` functions; of pytest only mark.parametrize and `with pytest.raises(…)`;
  math.isclose for fractions. Of each tool: the normal, the boundary (empty, one, longest, largest),
  the error (ToolError and its message), bad data (NaN, missing keys, duplicates, line ends).
- code: the whole server.py: a function under `@tool` per tool, named like it, its parameters the
  properties of input_schema; an optional one has a default (UNSET, from toolwright, for none).
- acceptance: [{says, tool, arguments, result or failure: "tool"}], `says` copied from the task,
  written by another: a subagent that sees the task and the schemas alone. Where neither you nor a
  configured model gives one, the review is skipped, and the server says so.
- why: what this draft does, or changes.

An object that a tool returns is the result, anything else becomes {"result": value}. `raise
Refused("unknown_unit", "…")`, a ToolError from toolwright, says what the caller did wrong, where
`tools` has "refusals": {"unknown_unit": "when"} beside the tool's name and a case has failure:
"tool", code: "unknown_unit"; another ToolError may be held against the server, any other exception
is a bug. In a case {"$any": "string"} stands for a key or a time that differs from run to run."""

_COMPUTE = """
More: `from toolwright import content` for what is no JSON: content.text("…"), .image(data,
"image/png"), .audio(data, "audio/wav"), .document(uri, text or bytes, media_type), .mixed("…",
…, structured={…}). A large text is an argument of type string with "x-toolwright-file": true; the
caller may give a file. packages: ["NAME==VERSION"] of PyPI, wheels, each allowed by a person."""

_ASKS_HTTP = """
# An API of its own
- api: what the documentation says, every part with a `quote` that stands in it letter for letter:
  {base_url: {url, quote}, auth: {kind: none|bearer|basic|header|query|cookie|oauth2, name,
  token_url, quote}, limits: {requests, per_seconds, quote}, operations: [{method, path, quote,
  parameters: [{name, in: path|query|header, type, required, quote}], body: {media_type, quote,
  fields: [{name, type, required, quote}]}, responses and errors: [{status, quote, example}]}]}.
  A path is quoted with its line, a parameter with its name, a status with its number; `example` is
  a response's JSON as the text has it. The mock that proves the code is made of this. Without
  documentation at the job's source, the task's own words are quoted.
- calls, in a tool: the operations that its code calls, ["GET /berths/{id}", …]. With a POST, PUT,
  PATCH or DELETE it is a write, and one call sends one: it waits for a person who sees the exact
  request.
- `from toolwright import http, HttpError`; http.request(method, path, path={…}, query={…},
  header={…}, json=…, form=…, text=…) takes the path as declared, below the base URL, and leaves out
  values that are UNSET. It returns a 2xx answer: .status, .headers, .body (parsed JSON, None where
  it is none), .text, .data (bytes). It raises HttpError (.status, .retry_after, .answer) for any
  other status, and ToolErrors where no answer came or its JSON is broken: let them pass.
  Credentials are added outside. Check the shape of .body: a page may come instead, fields may be
  missing.
- A case says what the API answers: "answers": [{request: "GET /berths?min_length=9", sent: {JSON
  body}, headers: {name: what it has to be}, status, body}] or {request, failure: "timeout" or
  "unreachable"}; of several to one request each is given once, in order, the last from then on.
  Each operation in `calls` is asked by some case. Request and answer are held against `api`.
- In tests: `from toolwright.testing import answers`; `with answers((200, {…}), (500, "down"),
  "timeout") as asked:`, one reply a request, the last from then on; asked[0].method, .url,
  .headers, .body."""

_ASKS_TOOLS = """
# Tools of other servers
- permissions: ["call:SERVER.TOOL", …] in the tool; `find` has their schemas. A tool that calls a
  `write` says access: "write"; the write waits for a person who sees the exact request.
- `from toolwright import servers`; servers.call("server.tool", {arguments}) returns what that tool
  gives, by its output_schema: {"status", "body"} of one that calls an API, {"result": …} where it
  is no object. It raises servers.CallFailed, a ToolError with .failure, where that tool fails: let
  it pass, or raise a ToolError that says more. Check the shape of what it returns.
- A case says what it is answered: "answers": [{tool: "server.tool", arguments, result, or failure:
  "its message"}], held against that tool's schemas; of several to one call each is given once, in
  order, the last from then on.
- In tests: `from toolwright.testing import tools`; `with tools({tool, arguments, result}, …) as
  asked:`, the same form, but of several to one call always the first.
- The network besides HTTP: `from toolwright import network`; network.dns(name, type, server),
  .tls_peer(host, port), .tcp(host, port, data, until=…, max_bytes=…), a write; in `answers` they
  are the tools network.dns, network.tls_peer, network.tcp."""

_RULES = f"""# Rules that are checked
- Python 3.11, one file. Imports, at the top: {_MODULES};
  of each only public names, no module as a value.
- At the top level only imports, functions, classes and constants: literals, their operators, calls
  such as re.compile, frozenset, namedtuple; no comprehension, no loop.
- No eval, exec, open, print, input, globals, getattr with a computed name, dunder names (but
  super().__init__, x.__class__.__name__), private attributes of others, metaclasses, `global`.
  Decorators: @tool, @dataclass, @unique, @property, @staticmethod, @classmethod.
- No secret in code, tests or cases. Nothing is kept between calls; time and chance are arguments,
  or permissions.

# Done when
- Each tool has two cases or more that expect different things. One whose result is empty (0, "",
  [], false, null) proves nothing: what is truly empty or zero belongs in a test, beside one that
  is not.
- Every test passes, and none where the functions give nothing, something empty or their first
  argument: let each assert also what such a function would not give.
- A test stays in later drafts. One that is wrong: change it and name it in `why`, or take it out by
  `drop NAME` there; a person then looks at it.
- Each literal of the task (IIII, 2026-02-30) is asked for by a test or a case, or `why` names it
  as no example.
- Every case comes out, the same in two runs; fractions within 1e-9; a test or a case takes at most
  2 s, all of them 10 s.
- Tests and cases notice small changes to the code (< to <=, a raise left out, a number one larger):
  all but two, or 85 of 100. Code that looks up its cases is sent back.
- Whatever input_schema admits gives a result or a ToolError: the empty text, 10,000 letters, 1e308,
  -1, ±400 digits, nested values, any script. Bound it (minimum, maximum, maxLength, maxItems,
  enum), or check. Infinity and NaN are no JSON.
- What it refuses is refused: `required`, and additionalProperties: false.
- The result is as output_schema says, and a failure is never told as a result."""

_PERMISSIONS = '"network:HOST", "call:SERVER.TOOL", "dns:ZONE", "tls:HOST:PORT", "tcp:HOST:PORT"'
_FURTHER = {
    "compute": _PERMISSIONS,
    "http": f"{_PERMISSIONS}; `calls` needs none",
    "composite": _PERMISSIONS,
}
_PARTS: Mapping[Kind, str] = {"compute": _COMPUTE, "http": _ASKS_HTTP, "composite": _ASKS_TOOLS}
_EXAMPLES: Mapping[Kind, tuple[str, Mapping[str, Any]]] = {
    "compute": (EXAMPLE_TASK, EXAMPLE),
    "http": (HTTP_TASK, HTTP_EXAMPLE),
    "composite": (COMPOSITE_TASK, COMPOSITE_EXAMPLE),
}


def render_page(kind: Kind, job: str) -> str:
    """All that an author of this kind of server has to know, without an example."""
    further = _FURTHER[kind]
    if job and kind == "compute":
        further += (
            ".\n  For a tool that asks an API or runs other servers' tools: `status` with\n"
            f"  job={job} and brief=http or brief=composite gives the page"
        )
    return "\n\n".join((_HAND_IN % {"further": further} + "\n" + _PARTS[kind].lstrip("\n"), _RULES))


def render_example(kind: Kind) -> str:
    """A draft that is accepted as it stands."""
    task, example = _EXAMPLES[kind]
    written = [
        f"tests:\n```python\n{example['tests']}```",
        f"code:\n```python\n{example['code']}```",
    ]
    rest = {key: example[key] for key in ("api", "tools", "cases") if key in example}
    shown = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))
    return "\n".join((f"# An example: {task}", *written, f"the rest:\n```json\n{shown}\n```"))
