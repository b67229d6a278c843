"""Validating clients' requests for prompts, resources and completions before they are forwarded.
Raises Refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.frontends.protocol import INVALID_PARAMS, RpcError
from sandbox.bundle.offer import Offer
from sandbox.thirdparty.subscriptions import MAX_WATCHED
from sandbox.wire.content import is_uri

MAX_VALUE = 256 * 1024


def check_no_cursor(params: Mapping[str, Any]) -> None:
    if params.get("cursor") is not None:
        raise _build_invalid("there is only one page")


def parse_uri(params: Mapping[str, Any]) -> str:
    uri = params.get("uri")
    if not is_uri(uri):
        raise _build_invalid("uri is no URI")
    return str(uri)


def parse_uris(params: Mapping[str, Any]) -> tuple[str, ...]:
    """The resources that a `subscriptions/listen` is about."""
    wanted = params.get("notifications")
    uris = wanted.get("resourceSubscriptions", []) if isinstance(wanted, Mapping) else None
    if not isinstance(uris, list) or len(uris) > MAX_WATCHED or not all(map(is_uri, uris)):
        raise _build_invalid(f"notifications names no list of at most {MAX_WATCHED} URIs")
    return tuple(dict.fromkeys(uris))


def parse_prompt_request(params: Mapping[str, Any], offer: Offer) -> dict[str, Any]:
    """A `prompts/get` of a prompt that was registered, with arguments that it has."""
    prompt = offer.find_prompt(_parse_name(params))
    if prompt is None:
        raise _build_invalid(f"Unknown prompt: {_parse_name(params)[:200]}")
    given = _parse_texts(params.get("arguments"), "arguments")
    known = {one["name"]: one.get("required", False) for one in prompt.get("arguments", ())}
    strange = given.keys() - known.keys()
    if strange:
        raise _build_invalid(f"the prompt has no argument {sorted(strange)[0][:200]}")
    missing = sorted(name for name, required in known.items() if required and name not in given)
    if missing:
        raise _build_invalid(f"the argument {missing[0]} is missing")
    return {"name": prompt["name"], **({"arguments": given} if given else {})}


def parse_completion_request(params: Mapping[str, Any], offer: Offer) -> dict[str, Any]:
    """A `completion/complete` of an argument of a registered prompt or template."""
    argument = params.get("argument")
    argument = argument if isinstance(argument, Mapping) else {}
    name, value = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(value, str) or len(name + value) > MAX_VALUE:
        raise _build_invalid("argument is no object with name and value")
    made: dict[str, Any] = {
        "ref": _parse_reference(params.get("ref"), offer),
        "argument": {"name": name, "value": value},
    }
    context = params.get("context")
    if isinstance(context, Mapping) and context.get("arguments") is not None:
        made["context"] = {"arguments": _parse_texts(context["arguments"], "context.arguments")}
    return made


def _parse_reference(said: Any, offer: Offer) -> dict[str, Any]:
    ref = said if isinstance(said, Mapping) else {}
    if ref.get("type") == "ref/prompt" and offer.find_prompt(str(ref.get("name"))) is not None:
        return {"type": "ref/prompt", "name": ref["name"]}
    known = {template["uriTemplate"] for template in offer.templates}
    known |= {resource["uri"] for resource in offer.resources}
    if ref.get("type") == "ref/resource" and ref.get("uri") in known:
        return {"type": "ref/resource", "uri": ref["uri"]}
    raise _build_invalid("ref is neither a known prompt nor a known template")


def _parse_name(params: Mapping[str, Any]) -> str:
    name = params.get("name")
    if not isinstance(name, str):
        raise _build_invalid("name is no string")
    return name


def _parse_texts(value: Any, what: str) -> dict[str, str]:
    """A mapping of strings, of reasonable size."""
    given = {} if value is None else value
    sound = isinstance(given, Mapping) and all(isinstance(text, str) for text in given.values())
    if not sound or sum(len(key) + len(text) for key, text in given.items()) > MAX_VALUE:
        raise _build_invalid(f"{what} is no object of strings of at most {MAX_VALUE} characters")
    return dict(given)


def _build_invalid(reason: str) -> RpcError:
    return RpcError(INVALID_PARAMS, reason)
