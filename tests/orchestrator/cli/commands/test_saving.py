"""What `toolwright call --save` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.commands.call import save_media
from orchestrator.errors import OrchestratorError
from sandbox.session.interface import Outcome

TEXT = {"type": "text", "text": "application/pdf, 2 bytes"}
DOCUMENT = {"type": "resource", "resource": {"uri": "a:b", "blob": "/wA="}}


def outcome(*blocks: dict[str, Any]) -> Outcome:
    return Outcome("t", {"content": list(blocks)}, None)


def test_the_answers_document_is_written_and_its_text_tells_of_it(tmp_path: Path) -> None:
    held = outcome(TEXT, DOCUMENT)
    save_media(held, tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes() == b"\xff\x00"
    assert held.text == "application/pdf, 2 bytes"


def test_an_answer_without_a_file_and_a_place_that_is_none_are_told(tmp_path: Path) -> None:
    with pytest.raises(OrchestratorError, match="holds no file"):
        save_media(outcome(TEXT), tmp_path / "a")
    assert not (tmp_path / "a").exists()
    with pytest.raises(OrchestratorError, match="cannot be written"):
        save_media(outcome(DOCUMENT), tmp_path / "none" / "a")
