"""Fields of the page's forms, one for an argument of a tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from orchestrator.control.arguments import FormArgument, render_types
from orchestrator.control.texts import ShownText, cut_text

MAX_OPTION = 60
MAX_SAMPLE = 60
MAX_KIND, MAX_DESCRIPTION = 80, 400


@dataclass(frozen=True)
class FormField:
    """A labelled field for an argument. `name` is what is sent and stands in an attribute alone;
    `choices` are (what is sent, what is shown); `value` is what stands in it at first, as it is
    sent.
    """

    name: str
    label: ShownText
    kind: ShownText
    about: ShownText
    sample: ShownText
    required: bool
    input: Literal["select", "textarea", "decimal", "text"]
    choices: tuple[tuple[str, ShownText], ...] = ()
    value: str = ""


def build_field(argument: FormArgument) -> FormField:
    choices = _list_choices(argument)
    return FormField(
        argument.name,
        cut_text(argument.label or argument.name, 80),
        cut_text(render_types(argument.types), MAX_KIND),
        cut_text(argument.description, MAX_DESCRIPTION),
        cut_text(argument.sample, MAX_SAMPLE),
        argument.required,
        "select" if choices else _choose_input(argument),
        tuple((text, cut_text(text.strip(_QUOTE), MAX_OPTION)) for text in choices),
        argument.value,
    )


def _choose_input(argument: FormArgument) -> Literal["textarea", "decimal", "text"]:
    if argument.types & {"object", "array"}:
        return "textarea"
    return "decimal" if argument.types and argument.types <= _NUMERIC else "text"


_NUMERIC = frozenset({"integer", "number", "null"})
_QUOTE = '"'


def _list_choices(argument: FormArgument) -> tuple[str, ...]:
    truth = argument.types - {"null"} == {"boolean"}
    return argument.choices or (("true", "false") if truth else ())
