"""What a forge job keeps is the same value after it was stored."""

from __future__ import annotations

import json

import pytest

from registry.jobs.pending import (
    DraftLine,
    PendingForge,
    SimilarTool,
    pending_json,
    read_pending,
)

BEGUN = PendingForge(name="roman", parent="roman@1:abc", near=(SimilarTool("a.b", "B."),))


@pytest.mark.parametrize(
    "pending",
    [
        PendingForge(),
        BEGUN,
        PendingForge(name="roman", near=()),
        PendingForge(derived={"operations": [{"id": "x"}]}),
        PendingForge("document", pages=("https://a/",), brief="Read it.", derived={"a": 1}),
        PendingForge(
            "draft",
            "roman",
            near=(),
            brief="Write it.",
            diagnosis="[suite] no",
            drafts=(DraftLine(1, "failed", "first", "openai", "m"),),
        ),
    ],
)
def test_it_is_read_back_as_it_was_stored(pending: PendingForge) -> None:
    assert read_pending(json.loads(json.dumps(pending_json(pending)))) == pending


@pytest.mark.parametrize("result", [None, "text", 3])
def test_what_keeps_nothing_is_none(result: object) -> None:
    assert read_pending(result) is None


def test_a_job_that_waits_for_nobody_says_only_what_was_decided() -> None:
    assert set(pending_json(BEGUN)) == {"name", "parent", "near"}
    assert pending_json(PendingForge(name="a", near=())) == {"name": "a", "near": ()}
