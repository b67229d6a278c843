"""Fields of the page's forms, one for an argument of a tool."""

from __future__ import annotations

from html import escape

from orchestrator.control.arguments import FormArgument, render_types
from orchestrator.control.markup import escape_text

MAX_OPTION = 60


def render_field(argument: FormArgument) -> str:
    """A labelled field for an argument."""
    name = escape(argument.name)
    shown = escape_text(argument.name, 80)
    star = ' <b class="needed">required</b>' if argument.required else ""
    kind = render_types(argument.types)
    about = escape_text(argument.description, 400)
    return (
        f"<label><span><code>{shown}</code> <small>{escape_text(kind, 80)}</small>{star}</span>"
        f"{_render_input(argument, name)}<small>{about}</small></label>"
    )


def _render_input(argument: FormArgument, name: str) -> str:
    needed = " required" if argument.required else ""
    if choices := _list_choices(argument):
        options = "".join(
            f'<option value="{escape(text)}"{" selected" if text == argument.value else ""}>'
            f"{escape_text(text.strip(_QUOTE), MAX_OPTION)}</option>"
            for text in choices
        )
        return f'<select data-field="{name}"{needed}><option value=""></option>{options}</select>'
    hint = f' placeholder="{escape_text(argument.sample, 60)}"' if argument.sample else ""
    if argument.types & {"object", "array"}:
        return (
            f'<textarea data-field="{name}" rows="3" spellcheck="false"{hint}{needed}>'
            f"{escape(argument.value)}</textarea>"
        )
    mode = ' inputmode="decimal"' if argument.types and argument.types <= _NUMERIC else ""
    value = f' value="{escape(argument.value)}"' if argument.value else ""
    return f'<input data-field="{name}" maxlength="20000"{mode}{hint}{value}{needed}>'


_NUMERIC = frozenset({"integer", "number", "null"})
_QUOTE = '"'


def _list_choices(argument: FormArgument) -> tuple[str, ...]:
    truth = argument.types - {"null"} == {"boolean"}
    return argument.choices or (("true", "false") if truth else ())
