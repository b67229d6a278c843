"""The process of `toolwright run NAME`: a registered server by itself."""

from __future__ import annotations

from orchestrator.frontends.early import EarlyAnswers
from orchestrator.frontends.single_server import serve_registered
from orchestrator.processes.termination import run_until_terminated


def serve_registered_process(
    name: str,
    engine: str | None,
    with_control: bool,
    account: str | None,
    early: EarlyAnswers | None,
) -> None:
    """Serve the server of that name over stdin and stdout until end of file, where `early` has
    answered until now; its calls go out with that account.
    """
    run_until_terminated(serve_registered(name, engine, with_control, account, early))
