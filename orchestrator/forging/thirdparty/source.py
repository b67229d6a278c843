"""Sources of third-party servers, parsed from the command after `toolwright add NAME --`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import OrchestratorError


@dataclass(frozen=True)
class NpmSource:
    """`npx [-y] [-p SPEC] NAME …`."""

    spec: str
    binary: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class PypiSource:
    """`uvx [--from SPEC] [--with SPEC] NAME …`, or `python -m MODULE …` of the packages."""

    specs: tuple[str, ...]
    script: str = ""
    module: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScriptSource:
    """`python FILE …`, a script that needs the standard library only."""

    path: Path
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImageSource:
    reference: str
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgramSource:
    """A command of this machine, without a cage."""

    command: tuple[str, ...]


CagedSource = NpmSource | PypiSource | ScriptSource | ImageSource
Source = CagedSource | ProgramSource


def list_words(source: Source) -> tuple[str, ...]:
    """The words of the command that are kept and shown with the server."""
    if isinstance(source, ImageSource | ProgramSource):
        return source.command
    return source.arguments


def parse_command(command: Sequence[str], packages: Sequence[str] = ()) -> Source:
    """What a command starts. `packages` are PyPI's that `python` needs. Raises OrchestratorError
    for one that cannot be fetched ahead of time.
    """
    if not command:
        raise OrchestratorError(f"there is no command. {_KNOWN}")
    program, rest = Path(command[0]).name, list(command[1:])
    if program == "npx":
        return _parse_npx(rest)
    if program == "uvx" or (program == "uv" and rest[:2] == ["tool", "run"]):
        return _parse_uvx(rest if program == "uvx" else rest[2:])
    if program.startswith("python"):
        return _parse_python(rest, tuple(packages))
    if program in ("docker", "podman"):
        return _parse_docker(program, rest)
    raise OrchestratorError(f"{program} is not a way that a server can be fetched ahead. {_KNOWN}")


def _parse_npx(words: list[str]) -> NpmSource:
    spec = ""
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in ("-p", "--package") and words:
            spec = words.pop(0)
        elif word.startswith("--package="):
            spec = word.partition("=")[2]
        elif word == "--":
            break
        elif word not in ("-y", "--yes"):
            raise OrchestratorError(f"npx {word} is not understood here. {_KNOWN}")
    if not words:
        raise OrchestratorError(f"npx names no package. {_KNOWN}")
    named, *arguments = words
    return NpmSource(spec or named, named if spec else "", tuple(arguments))


def _parse_uvx(words: list[str]) -> PypiSource:
    spec, others = "", []
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name not in ("--from", "--with") or not (equals or words):
            raise OrchestratorError(f"uvx {word} is not understood here. {_KNOWN}")
        value = value if equals else words.pop(0)
        if name == "--from":
            spec = value
        else:
            others.append(value)
    if not words:
        raise OrchestratorError(f"uvx names no package. {_KNOWN}")
    named, *arguments = words
    name, at, version = named.partition("@")
    wanted = f"{name}=={version}" if at and version != "latest" else name
    script = Path(name).name.partition("-")[0] if name.endswith(".whl") else name.partition("[")[0]
    return PypiSource((spec or wanted, *others), script=script, arguments=tuple(arguments))


def _parse_python(words: list[str], packages: tuple[str, ...]) -> PypiSource | ScriptSource:
    if words[:1] == ["-m"] and len(words) > 1:
        module, *arguments = words[1:]
        own = (module.partition(".")[0].replace("_", "-"),)
        return PypiSource(packages or own, module=module, arguments=tuple(arguments))
    if words and not words[0].startswith("-") and Path(words[0]).is_file():
        if packages:
            raise OrchestratorError("a script has no packages: make it a package of its own.")
        return ScriptSource(Path(words[0]), tuple(words[1:]))
    raise OrchestratorError(f"python takes -m MODULE, or a file that is there. {_KNOWN}")


def _parse_docker(program: str, words: list[str]) -> ImageSource:
    """Of an image's own start nothing else is taken over: its sandbox is Toolwright's."""
    if words[:1] != ["run"]:
        raise OrchestratorError(f"of {program} only `run` is understood here. {_KNOWN}")
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        name, equals, value = (word := rest.pop(0)).partition("=")
        if word in _DOCKER_ALONE:
            continue
        if name not in _DOCKER_VALUED or not (equals or rest):
            raise OrchestratorError(
                f"{program} run {name} is not understood here: paths are given by --fs, hosts by "
                f"--allow. {_KNOWN}"
            )
        value = value if equals else rest.pop(0)
        if name in _DOCKER_VARIABLES and "=" in value:
            raise OrchestratorError(
                f"{program} run has the value of {value.partition('=')[0][:60]} in its command. "
                "Put it into the vault and name it by --env."
            )
    if not rest:
        raise OrchestratorError(f"{program} run names no image. {_KNOWN}")
    return ImageSource(rest[0], tuple(rest[1:]))


_DOCKER_ALONE = frozenset({"-i", "--interactive", "--rm", "--init", "-t", "--tty", "-it", "-ti"})
_DOCKER_VARIABLES = frozenset({"-e", "--env"})
_DOCKER_VALUED = _DOCKER_VARIABLES | {"--name", "--pull"}
_KNOWN = (
    "Known are `npx -y PACKAGE …`, `uvx PACKAGE …`, `python -m MODULE …`, `python FILE …` and "
    "`docker run IMAGE …`. `toolwright add` takes any image with --image, and with --unconfined "
    "starts anything, without a sandbox."
)
