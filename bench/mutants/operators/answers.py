"""Operators on what becomes of the API's answers and errors."""

from __future__ import annotations

from functools import partial

from bench.mutants.mutant import Changed, Operator, operator
from bench.mutants.operators.values import outputs, told
from bench.mutants.site import Site


def _woven(name: str, what: str, code: str) -> Operator:
    """An operator with the same statements for every tool."""

    def apply(site: Site) -> Changed:
        yield "", partial(site.woven, code)

    return Operator(name, what, apply)


def answer_field_lost(site: Site) -> Changed:
    """A field of the answer is lost."""
    for spot in outputs(site):
        if spot.path and spot.path[-1] != "[]":
            name, change = (
                spot.path[-1],
                "lambda value: {k: v for k, v in value.items() if k != KEY}",
            )
            change = f"{change.replace('KEY', repr(name))} if isinstance(value, dict) else value"
            code = f"answer.body = _at(answer.body, {spot.path[:-1]!r}, {change})"
            yield told("", spot), partial(site.woven, f"answer = REQUEST\n{code}\nreturn answer")


def answer_field_renamed(site: Site) -> Changed:
    """A field of the answer under another name."""
    for spot in outputs(site):
        if spot.path and spot.path[-1] != "[]":
            rename = f"{{(k + 'x' if k == {spot.path[-1]!r} else k): v for k, v in value.items()}}"
            change = f"lambda value: {rename} if isinstance(value, dict) else value"
            code = f"answer.body = _at(answer.body, {spot.path[:-1]!r}, {change})"
            yield told("", spot), partial(site.woven, f"answer = REQUEST\n{code}\nreturn answer")


def answer_unwrapped(site: Site) -> Changed:
    """One field of the answer in place of all of it."""
    for spot in outputs(site):
        if len(spot.path) == 1 and spot.path[0] != "[]":
            code = f"answer.body = answer.body.get({spot.path[0]!r})"
            test = "isinstance(answer.body, dict)"
            yield (
                spot.path[0],
                partial(site.woven, f"answer = REQUEST\nif {test}:\n    {code}\nreturn answer"),
            )


def _caught(kind: str, result: str) -> str:
    return f"try:\n    return REQUEST\nexcept {kind} as error:\n    {result}"


_EMPTY = "return {'status': 200}"
OPERATORS: tuple[Operator, ...] = (
    *map(operator, (answer_field_lost, answer_field_renamed, answer_unwrapped)),
    _woven("status-lost", "The status is not told", "return {'body': REQUEST.body}"),
    _woven(
        "status-constant",
        "Every success has the status 200",
        "answer = REQUEST\nanswer.status = 200\nreturn answer",
    ),
    _woven("body-lost", "Of the answer only the status", "return {'status': REQUEST.status}"),
    _woven("bare-body", "The answer's body without its status", "return REQUEST.body"),
    _woven(
        "answer-as-text",
        "JSON as a text",
        "answer = REQUEST\nreturn {'status': answer.status, 'text': answer.text or '',"
        " 'content_type': answer.content_type}",
    ),
    _woven(
        "answer-headers-lost",
        "The headers that a caller goes on by are lost",
        "answer = REQUEST\nanswer.headers = {k: v for k, v in answer.headers.items()"
        " if k == 'content-type'}\nreturn answer",
    ),
    _woven(
        "answer-text-cut",
        "The result's text is cut at 200 characters",
        "answer = REQUEST\nif answer.text:\n    answer.text = answer.text[:200]\nreturn answer",
    ),
    _woven(
        "bytes-cut",
        "Of bytes the first 16",
        "answer = REQUEST\nif answer.text is None:\n    answer.data = answer.data[:16]\n"
        "return answer",
    ),
    _woven(
        "bytes-reversed",
        "Other bytes of the same number",
        "answer = REQUEST\nif answer.text is None:\n    answer.data = answer.data[::-1]\n"
        "return answer",
    ),
    _woven(
        "bytes-of-another-type",
        "Bytes under another media type",
        "answer = REQUEST\nif answer.text is None:\n    answer.content_type = 'image/gif'\n"
        "return answer",
    ),
    _woven(
        "bytes-of-no-type",
        "Bytes as what can be anything",
        "answer = REQUEST\nif answer.text is None:\n"
        "    answer.content_type = 'application/octet-stream'\nreturn answer",
    ),
    _woven(
        "bytes-as-mojibake",
        "Bytes as a text",
        "answer = REQUEST\nif answer.text is None:\n"
        "    answer.text = answer.data.decode('utf-8', 'replace')\nreturn answer",
    ),
    _woven(
        "bytes-not-shown",
        "What bytes are, without them",
        "answer = REQUEST\nif answer.text is None:\n"
        "    return {'status': answer.status, 'bytes': len(answer.data), 'content_type':"
        " answer.content_type}\nreturn answer",
    ),
    _woven(
        "content-type-lost",
        "The content type is not told",
        "answer = REQUEST\nanswer.content_type = ''\nreturn answer",
    ),
    _woven(
        "answer-wrapped",
        "The answer inside another",
        "return {'status': 200, 'body': {'data': REQUEST.body}}",
    ),
    _woven(
        "hard-coded-answer",
        "The same answer whatever the API says",
        "answer = REQUEST\nreturn {'status': 200, 'body': {}}",
    ),
    _woven(
        "answer-without-asking", "An answer without a request", "return {'status': 200, 'body': {}}"
    ),
    _woven(
        "answer-shortened",
        "Of a list the first three items",
        "answer = REQUEST\nif isinstance(answer.body, list):\n    answer.body = answer.body[:3]\n"
        "return answer",
    ),
    _woven(
        "answer-keys-lower-cased",
        "The names of fields in small letters",
        "answer = REQUEST\nif isinstance(answer.body, dict):\n"
        "    answer.body = {k.lower(): v for k, v in answer.body.items()}\nreturn answer",
    ),
    _woven(
        "empty-answer-fails",
        "An empty answer is told as a failure",
        "answer = REQUEST\nif not answer.data:\n    raise ToolError('nothing')\nreturn answer",
    ),
    _woven("errors-swallowed", "Every failure is an empty success", _caught("Exception", _EMPTY)),
    _woven(
        "http-errors-swallowed",
        "Every 4xx and 5xx is an empty success",
        _caught("HttpError", _EMPTY),
    ),
    _woven(
        "client-errors-swallowed",
        "Every 4xx is an empty success",
        "try:\n    return REQUEST\nexcept HttpError as error:\n"
        "    if error.status < 500:\n        return {'status': 200}\n    raise",
    ),
    _woven(
        "server-errors-emptied",
        "Every 5xx is an empty success",
        "try:\n    return REQUEST\nexcept HttpError as error:\n"
        "    if error.status >= 500:\n        return {'status': 200}\n    raise",
    ),
    _woven(
        "missing-is-nothing",
        "404 is an empty success",
        "try:\n    return REQUEST\nexcept HttpError as error:\n"
        "    if error.status == 404:\n        return {'status': 200}\n    raise",
    ),
    _woven(
        "error-as-answer",
        "A failure's status and body as if it were a success",
        _caught("HttpError", "return error.answer"),
    ),
    _woven(
        "error-message-lost",
        "What the API said of a failure is lost",
        _caught("HttpError", "raise ToolError(f'HTTP {error.status}') from error"),
    ),
    _woven(
        "error-kind-lost",
        "A failure without its status",
        _caught("HttpError", "raise ToolError(str(error)) from error"),
    ),
    _woven(
        "error-body-lost",
        "A failure's status without what the API said",
        _caught("HttpError", "error.args = (f'HTTP {error.status}',)\n    raise"),
    ),
    _woven(
        "error-status-changed",
        "Every failure has the status 500",
        _caught("HttpError", "error.status = 500\n    raise"),
    ),
    _woven(
        "retry-after-lost",
        "How long to wait is not told",
        _caught("HttpError", "error.retry_after = None\n    raise"),
    ),
    _woven(
        "malformed-swallowed",
        "JSON that does not parse is an empty success",
        _caught("MalformedAnswer", _EMPTY),
    ),
    _woven(
        "malformed-as-text",
        "JSON that does not parse is told as a text",
        _caught("MalformedAnswer", "return {'status': 200, 'text': error.answer.text or ''}"),
    ),
    _woven(
        "malformed-fails",
        "JSON that does not parse is a failure",
        _caught("MalformedAnswer", "raise ToolError(str(error)) from error"),
    ),
    _woven(
        "malformed-cut",
        "Of JSON that does not parse only the first line is given",
        _caught(
            "MalformedAnswer",
            "return {'status': error.answer.status, "
            "'text': ''.join((error.answer.text or '').splitlines()[:1]), "
            "'content_type': error.answer.content_type}",
        ),
    ),
    _woven(
        "null-fails",
        "An answer that is null is a failure",
        "answer = REQUEST\nif answer.is_json and answer.body is None:\n"
        "    raise ToolError('nothing came')\nreturn answer",
    ),
    _woven(
        "null-field-fails",
        "A field that is null makes the answer a failure",
        "answer = REQUEST\n"
        "held = answer.body if isinstance(answer.body, dict) else "
        "(answer.body or [{}])[0] if isinstance(answer.body, list) else {}\n"
        "if isinstance(held, dict) and None in held.values():\n"
        "    raise ToolError('a field is null')\nreturn answer",
    ),
    _woven(
        "null-fields-dropped",
        "Fields that are null are left out of an answer",
        "answer = REQUEST\nif isinstance(answer.body, dict):\n"
        "    answer.body = {k: v for k, v in answer.body.items() if v is not None}\n"
        "return answer",
    ),
    _woven(
        "other-type-dropped",
        "An answer that is no object and no list is left out",
        "answer = REQUEST\nif answer.is_json and not isinstance(answer.body, (dict, list)):\n"
        "    return {'status': answer.status}\nreturn answer",
    ),
    _woven(
        "unknown-field-dropped",
        "A field with a capital letter and a hyphen is left out",
        "answer = REQUEST\nif isinstance(answer.body, dict):\n"
        "    answer.body = {k: v for k, v in answer.body.items() if '-' not in k}\n"
        "return answer",
    ),
    _woven(
        "transport-swallowed",
        "No answer at all is an empty success",
        "try:\n    return REQUEST\nexcept ToolError as error:\n"
        "    if error.kind in ('timeout', 'unreachable', 'too_large'):\n"
        "        return {'status': 200}\n    raise",
    ),
    _woven(
        "timeout-swallowed",
        "A time-out is an empty success",
        "try:\n    return REQUEST\nexcept ToolError as error:\n"
        "    if error.kind == 'timeout':\n        return {'status': 200}\n    raise",
    ),
    _woven(
        "too-large-swallowed",
        "An answer too large is an empty success",
        "try:\n    return REQUEST\nexcept ToolError as error:\n"
        "    if error.kind == 'too_large':\n        return {'status': 200}\n    raise",
    ),
)
