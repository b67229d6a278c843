"""The text of a waiting write: the one that terminal, page, link, message and client show, and the
digest over it and all that it stands for.

It is plain text whose every line we begin: what servers, models and APIs say stands behind a label
or a bar, in one line, with nothing invisible in it. It depends on the approval alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from orchestrator.approvals.preview import MAX_CHANGES, find_changes
from orchestrator.approvals.visible import escape_invisible, escape_line
from registry.approvals.terms import build_terms
from registry.models import Approval
from sandbox.wire.exchange import WireRequest, WriteStep
from sandbox.wire.policy import parse_origin

MAX_CLAIM = 300
"""Characters shown of what the client says of its call, which decides nothing."""
MAX_SHOWN_BODY = 4_000
MAX_GLANCE = 16_000
"""Bytes of a body and characters of a text that a person can be shown beside the button that
approves it.
"""


def render_approval(approval: Approval) -> str:
    """All that is decided with an approval, and what the client says of it."""
    lines = [*render_head(approval), "", *render_body(approval.wire.body)]
    return "\n".join([*lines, *_render_effect(approval), *_render_claims(approval)])


def hash_approval(approval: Approval) -> str:
    """The digest that a decision names: of the text that is shown, and all that it stands for."""
    return build_terms(approval, render_approval(approval)).digest


def render_head(approval: Approval) -> list[str]:
    """What is asked without the request's body: the tools, their accounts, the place, the request's
    first lines, and until when.
    """
    return [
        f"{escape_line(approval.entry)}.{escape_line(approval.tool)}, version {approval.version}",
        *_render_steps(approval),
        *_render_place(approval.wire),
        f"until {_render_moment(approval.expires)}",
        f"{escape_line(approval.wire.method)} {escape_line(approval.wire.url)}",
        *(f"{escape_line(name)}: {escape_line(value)}" for name, value in approval.wire.headers),
    ]


def render_body(body: bytes) -> list[str]:
    """A body behind bars. Bytes that are no text stand as `\\xNN`."""
    text = escape_invisible(body.decode("utf-8", "backslashreplace"))
    return [f"| {line}" for line in text.split("\n")] if body else []


def is_glanceable(approval: Approval) -> bool:
    """Whether the whole text is short enough to stand beside a button."""
    if len(approval.wire.body) > MAX_SHOWN_BODY or len(approval.wire.url) > MAX_GLANCE:
        return False
    return len(render_approval(approval)) <= MAX_GLANCE


def render_glance(approval: Approval) -> str:
    """The whole text where it can be shown at once; else its beginning, saying so and who shows it
    whole.
    """
    if is_glanceable(approval):
        return render_approval(approval)
    head, body = "\n".join(render_head(approval)), approval.wire.body
    shown = "\n".join(render_body(body[:MAX_SHOWN_BODY]))
    cut = f"only {min(len(body), MAX_SHOWN_BODY)} of {len(body)} bytes of the body are shown"
    way = f"`toolwright approve {escape_line(approval.id)}` shows all of it and decides it"
    return f"{head[:MAX_GLANCE]}\n\n{shown}\n[{cut}, so it cannot be approved here: {way}]"


def _render_steps(approval: Approval) -> Iterator[str]:
    outer, *inner = approval.steps or (None,)
    if outer is not None:
        yield f"files {outer.digest[:16]}"
    for step in inner:
        yield f"sent through {_render_step(step)}"
    for step in approval.uses:
        if step not in inner:
            yield f"may call {_render_step(step)}"
    if approval.steps:
        yield from _render_accounts(approval.steps[-1])


def _render_step(step: WriteStep) -> str:
    return f"{escape_line(step.name)}, version {step.version}, files {step.digest[:16]}"


def _render_accounts(step: WriteStep) -> Iterator[str]:
    if not step.credentials:
        yield "with no credential"
    for use in step.credentials:
        name = escape_line(use.name)
        secret = f"the secret {escape_line(use.secret)} ({escape_line(use.mark)})"
        yield f"with the credential {name}: {secret if use.secret else 'not set'}"


def _render_place(wire: WireRequest) -> Iterator[str]:
    origin = parse_origin(wire.url)
    if origin is not None:
        yield f"to {escape_line(str(origin))}"


def _render_effect(approval: Approval) -> Iterator[str]:
    changes = find_changes(approval.wire, approval.present)
    for change in changes:
        yield f"changes {escape_line(str(change))}"
    if len(changes) == MAX_CHANGES:
        yield "and maybe more: the request is above, whole"
    arguments = json.dumps(dict(approval.arguments), ensure_ascii=False)
    if approval.wire.body.decode("utf-8", "replace") != arguments:
        yield f"arguments {escape_line(arguments)}"


def _render_claims(approval: Approval) -> Iterator[str]:
    for label, said in (
        ("task", approval.task),
        ("why", approval.reason),
        ("session", approval.session),
    ):
        if said:
            cut = f"… ({len(said)} characters)" if len(said) > MAX_CLAIM else ""
            yield f"{label}: {escape_line(said[:MAX_CLAIM])}{cut}"


def _render_moment(moment: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))
    except (ValueError, OverflowError, OSError):
        return f"{moment!r} s after 1970"
