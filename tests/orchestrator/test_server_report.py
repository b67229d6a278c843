"""What is told of a server's health."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from click.testing import CliRunner

from orchestrator.cli.main import toolwright
from orchestrator.server_report import describe_edit, find_own_cause
from orchestrator.settings import Settings
from registry.models import CallFailure, build_entry
from registry.servers.bundles import Bundles
from registry.servers.entries import EDIT_REFUSED
from registry.servers.files import get_server_directory
from registry.store import Store
from sandbox.bundle.model import Bundle
from tests.orchestrator.control.filled import SECOND
from tests.registry.samples import bundle, invocation

MADE = replace(bundle(), tools=(replace(bundle().tools[0], operation="listZones"),))
REFUSED = invocation(
    "c1",
    failure=CallFailure("refused", "refused"),
    exchanges=({"refusal": "refused", "reason": "the request is larger than the caps allow"},),
)


def test_files_that_are_not_those_of_the_version_in_use_are_told_with_why_a_change_was_refused(
    settings: Settings, store: Store
) -> None:
    now = time.time()
    shelf = Bundles(settings.home, store.servers)
    made = shelf.publish_bundle(SECOND, build_entry(SECOND, now), (), None)
    assert describe_edit(settings.home, store.servers, made) == ""
    place = get_server_directory(settings.home, "dns")
    (place / "server.py").write_text(SECOND.source_code + "# mine\n")
    # Of an earlier version.
    store.audit.add_note(EDIT_REFUSED, "dns", {"reason": "an old one"}, now - 60)
    changed = f"Its files were changed; version {made.version} as it was proved is in use."
    told = describe_edit(settings.home, store.servers, made)
    assert told == f"{changed} `toolwright serve` tries a change while it runs."
    store.audit.add_note(EDIT_REFUSED, "dns", {"reason": "list_zones fails"}, now + 60)
    told = describe_edit(settings.home, store.servers, made)
    assert told == f"{changed} The last try of a change was refused: list_zones fails"
    command = CliRunner().invoke(
        toolwright, ["show", "dns"], env={"TOOLWRIGHT_HOME": str(settings.home)}
    )
    assert "was refused: list_zones fails" in " ".join(command.stdout.split())


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
