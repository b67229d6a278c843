"""The `toolwright` command: a table of commands, each loaded only when it is run."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from orchestrator.cli.entry import COMPLETING as COMPLETING
from orchestrator.cli.entry import main as main
from orchestrator.cli.progress.working import WorkingLine

# name: (module under orchestrator.cli.commands, one line of help)
COMMANDS = {
    "setup": (
        "setup",
        "Prepare this machine: home, PIN, engine, base image, client configuration.",
    ),
    "serve": ("serve", "Serve MCP over stdio; what an MCP client starts."),
    "compile": ("compile", "Make a bundle of an API description, in a directory."),
    "run": ("run", "Serve one forged server, or a bundle's directory, by itself over stdio."),
    "do": ("do", "Do a task in words: run the right tool, or forge it."),
    "find": ("find", "Show the tools that fit a task."),
    "forge": ("forge", "Make or change a server, prove it and register it."),
    "submit": ("submit", "Hand in the code that a forge job waits for."),
    "add": ("add", "Register an MCP server that somebody else wrote, in a sandbox."),
    "import-clients": (
        "import_clients",
        "Have Toolwright run the servers that your MCP clients start.",
    ),
    "remove": ("remove", "Take a third-party server out of use, with all it was given."),
    "grant": ("grant", "Grant a server a permission it declares, list or revoke them."),
    "call": ("call", "Call one tool of a registered server."),
    "list": ("find", "List the registered servers."),
    "show": ("show", "Show one server: record, trust, tools, proofs."),
    "versions": ("versions", "List a server's versions and what each has learned."),
    "diff": ("rollback", "Show what changed between two versions of a server."),
    "rollback": ("rollback", "Go back to an earlier version of a server."),
    "reprove": ("reprove", "Prove registered servers again."),
    "images": ("images", "Build the base image again, and prove every server on it."),
    "archive": ("remove", "Take one server out of use."),
    "logs": ("logs", "Show calls and the audit log."),
    "replay": ("replay", "Run a recorded call, task or forge again, offline, and compare."),
    "jobs": ("jobs", "Show forge jobs and what they wait for."),
    "allow": ("jobs", "Allow all that a job waits for, and go on with it."),
    "source": ("source", "Add, list and remove API sources; allow hosts."),
    "secret": ("secret", "Set, list and remove secrets."),
    "login": ("secret", "Log in to a server's API with your browser or a code (OAuth)."),
    "logout": ("secret", "Revoke and remove the tokens of a log-in."),
    "accounts": ("secret", "List a server's accounts, or choose the default one."),
    "approvals": ("approvals", "List what waits for a person."),
    "approve": ("approvals", "Approve one waiting request."),
    "reject": ("approvals", "Reject one waiting request."),
    "rules": ("rules", "List and revoke what is allowed beforehand."),
    "classify": ("classify", "Say that an operation reads, writes or is destructive."),
    "push": ("push", "Be told of waiting requests, and decide by links."),
    "audit": ("audit", "Verify, search, show, export and archive the audit log."),
    "kill": ("freeze", "Freeze everything now."),
    "unfreeze": ("freeze", "Lift the freeze."),
    "work": ("work", "Carry out what is queued, without a client."),
    "control": ("control", "Run the control plane: page, approvals, kill switch, metrics."),
    "export": ("export", "Make an image of one server that runs without Toolwright."),
    "doctor": ("doctor", "Check files, rows, jobs, audit, containers and the engine."),
    "uninstall": ("uninstall", "Remove this home, its containers, and what clients have of it."),
    "backup": ("backup", "Write a backup of this home to a file, while it is in use."),
    "restore": ("backup", "Put a backup in the place of this home."),
    "completion": ("completion", "Print the completion script of a shell."),
    "demo": ("demo", "Watch the whole story run against a small example API."),
}


GROUPS: Mapping[str, tuple[str, ...]] = {
    "Use": ("do", "find", "call", "list", "show", "run", "serve"),
    "Make": ("forge", "submit", "compile", "add", "import-clients", "export", "remove", "archive"),
    "Decide": ("approvals", "approve", "reject", "allow", "rules", "grant", "classify", "push"),
    "Connect": ("source", "secret", "login", "logout", "accounts"),
    "Look": ("jobs", "logs", "audit", "replay", "versions", "diff", "doctor"),
    "Operate": ("setup", "control", "work", "kill", "unfreeze", "backup", "restore", "images"),
    "More": ("reprove", "rollback", "completion", "demo", "uninstall"),
}
"""The commands as `--help` shows them: what they are for, and at most eight of a kind."""


HIDDEN = {"resident": "resident"}
"""name: module, of commands that only Toolwright itself starts."""


class CommandGroup(click.Group):
    """Commands by name, imported on use."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        known = HIDDEN.get(name) or COMMANDS.get(name, ("",))[0]
        if not known:
            return None
        quiet = "--json" in sys.argv or COMPLETING in os.environ
        with WorkingLine("loading", quiet):
            module = importlib.import_module(f"orchestrator.cli.commands.{known}")
        command: click.Command = getattr(module, f"{name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = str(args[0])
        if name in COMMANDS or name in HIDDEN or name.startswith("-"):
            return super().resolve_command(context, args)
        if name == "help":
            about = "".join(f"{each} " for each in args[1:2] if each in COMMANDS)
            context.fail(f"Write `toolwright {about}--help`.")
        if name == "version":
            context.fail("Write `toolwright --version`, or `toolwright versions SERVER`.")
        # Loaded for this alone; every command would wait for it.
        near = importlib.import_module("difflib").get_close_matches(name, COMMANDS, 3, 0.5)
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        context.fail(f"there is no command {name[:60]!r}.{meant} `toolwright --help` lists all.")

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for group, names in GROUPS.items():
            with formatter.section(group):
                rows = [(name.ljust(width), COMMANDS[name][1]) for name in names]
                formatter.write_dl(rows)


@click.command(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(package_name="toolwright")
@click.option("--json", "as_json", is_flag=True, help="Without a command: as JSON for scripts.")
@click.pass_context
def toolwright(context: click.Context, /, as_json: bool, **_: Any) -> None:
    """Ask for something. If no registered MCP server can do it, Toolwright makes one and proves it.
    What writes waits for you.
    """
    if context.invoked_subcommand is not None and as_json:
        raise click.UsageError(f"Write --json behind {context.invoked_subcommand}.")
    if context.invoked_subcommand is None:
        with WorkingLine("loading", as_json):
            overview = importlib.import_module("orchestrator.cli.commands.overview")
        overview.show_overview(as_json)
