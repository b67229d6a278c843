"""The text of a waiting write: the one that terminal, page, link, message and client show, and the
digest over it and all that it stands for.

It is plain text whose every line we begin: what servers, models and APIs say stands behind a label
or a bar, in one line, with nothing invisible in it. It depends on the approval alone.

What is invisible is a property of Unicode, not a list of known tricks: Default_Ignorable_Code_Point
(https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point) and the general categories of
controls, formats, separators and code points without a character.
"""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Iterator

from orchestrator.approvals.preview import MAX_CHANGES, find_changes
from registry.approvals.terms import build_terms
from registry.models import Approval
from sandbox.wire.exchange import WriteStep
from sandbox.wire.policy import parse_origin

MAX_CLAIM = 300
"""Characters shown of what the client says of its call, which decides nothing."""
MAX_SHOWN_BODY = 4_000
MAX_GLANCE = 16_000
"""Bytes of a body and characters of a text that a person can be shown beside the button that
approves it.
"""


# DerivedCoreProperties.txt of Unicode 16. The property reserves these ranges as a whole, code
# points that have no character yet included.
_IGNORABLE = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
_INVISIBLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_BLANK = frozenset("\u2800\U0001d159\U00016fe4")
"""Symbols whose glyph is empty by their definition: the braille pattern without dots, the null
notehead, the Khitan filler."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE_LIKE = "\\u{"
_MOST_MARKS = 4
"""On one letter. Hebrew and Vietnamese take up to three; heaps of them cover the lines around."""


def render_approval(approval: Approval) -> str:
    """All that is decided with an approval, and what the client says of it."""
    lines = [*render_head(approval), "", *render_body(approval.wire.body)]
    return "\n".join([*lines, *_render_rest(approval)])


def hash_approval(approval: Approval) -> str:
    """The digest that a decision names: of the text that is shown, and all that it stands for."""
    return build_terms(approval, render_approval(approval)).digest


def render_head(approval: Approval) -> list[str]:
    """What is asked without the request's body: the tools, their accounts, the place, the request's
    first lines, and until when.
    """
    origin = parse_origin(approval.wire.url)
    return [
        f"{escape_line(approval.entry)}.{escape_line(approval.tool)}, version {approval.version}",
        *render_steps(approval),
        *([f"to {escape_line(str(origin))}"] if origin else []),
        f"until {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime(approval.expires))}",
        f"{escape_line(approval.wire.method)} {escape_line(approval.wire.url)}",
        *(f"{escape_line(name)}: {escape_line(value)}" for name, value in approval.wire.headers),
    ]


def render_body(body: bytes) -> list[str]:
    """A body behind bars. A byte NN that is no text stands as `\\u{dcNN}`, which no text does."""
    text = escape_invisible(body.decode("utf-8", "surrogateescape"))
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


def render_steps(approval: Approval) -> Iterator[str]:
    """The files and the tools that send a request, those that they may call, and their accounts."""
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


def _render_rest(approval: Approval) -> Iterator[str]:
    """What the write changes, the arguments, and what the client says of its call."""
    changes = find_changes(approval.wire, approval.present) if approval.present else ()
    for change in changes:
        yield f"changes {escape_line(str(change))}"
    if len(changes) == MAX_CHANGES:
        yield "and maybe more: the request is above, whole"
    arguments = json.dumps(dict(approval.arguments), ensure_ascii=False)
    if approval.wire.body.decode("utf-8", "replace") != arguments:
        yield f"arguments {escape_line(arguments)}"
    yield from render_claims(approval)


def render_claims(approval: Approval) -> Iterator[str]:
    """What the client says of its call."""
    for label, said in (
        ("task", approval.task),
        ("why", approval.reason),
        ("session", approval.session),
    ):
        if said:
            cut = f"… ({len(said)} characters)" if len(said) > MAX_CLAIM else ""
            yield f"{label}: {escape_line(said[:MAX_CLAIM])}{cut}"


def escape_invisible(text: str, keep: str = "\n\t") -> str:
    r"""The text with what cannot be seen written as `\u{…}`, but for the characters in `keep`.

    A mark (an accent, a stroke, a ring) is written out too where it stands on no letter. A text
    that itself holds `\u{` has that backslash written out, so that it is not taken for ours.
    """
    if text.isascii() and _ESCAPE_LIKE not in text and _CONTROL.search(text) is None:
        return text
    text = text.replace(_ESCAPE_LIKE, "\\u{5c}u{")
    letters = set(text) - set(keep)
    marks = "".join(letter for letter in letters if unicodedata.category(letter).startswith("M"))
    if marks:
        text = _escape_loose_marks(text, re.escape(marks))
    return text.translate({ord(each): _write_out(each) for each in letters if is_invisible(each)})


def escape_line(text: str) -> str:
    """The same for a text that has to stay in its line: line ends and tabs are written out."""
    return escape_invisible(text, keep="")


def is_invisible(letter: str) -> bool:
    """Whether a character shows nothing by itself or moves others; an ordinary blank does not."""
    if letter == " ":
        return False
    if unicodedata.category(letter) in _INVISIBLE or letter in _BLANK:
        return True
    return any(first <= ord(letter) <= last for first, last in _IGNORABLE)


def _escape_loose_marks(text: str, marks: str) -> str:
    def write_run(run: re.Match[str]) -> str:
        before = text[run.start() - 1 : run.start()]
        on_letter = bool(before) and unicodedata.category(before).startswith("L")
        if on_letter and not is_invisible(before) and len(run[0]) <= _MOST_MARKS:
            return run[0]
        return "".join(map(_write_out, run[0]))

    return re.sub(f"[{marks}]+", write_run, text)


def _write_out(letter: str) -> str:
    return f"\\u{{{ord(letter):x}}}"
