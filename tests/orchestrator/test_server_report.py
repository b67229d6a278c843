"""What is told of a server's health."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.server_report import find_own_cause
from registry.models import CallFailure
from sandbox.bundle.model import Bundle
from tests.registry.samples import bundle, invocation

MADE = replace(bundle(), tools=(replace(bundle().tools[0], operation="listZones"),))
REFUSED = invocation(
    "c1",
    failure=CallFailure("refused", "refused"),
    exchanges=({"refusal": "refused", "reason": "the request is larger than the caps allow"},),
)


@pytest.mark.parametrize(
    ("made", "kind"),
    [(MADE, "input"), (replace(MADE, version=2), "bug"), (None, "bug")],
)
def test_a_refusal_is_the_callers_where_the_version_that_was_called_says_so(
    made: Bundle | None, kind: str
) -> None:
    cause = find_own_cause(REFUSED, made)
    assert cause is not None
    assert cause.kind == kind
