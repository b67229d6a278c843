"""Exceptions of the sandbox package. Each message says what to do next."""

from __future__ import annotations


class SandboxError(Exception):
    """The base of all errors of this folder."""


class BundleInvalid(SandboxError):
    """A bundle directory cannot be used."""

    def __init__(self, directory: str, file: str, reason: str) -> None:
        self.directory, self.file, self.reason = directory, file, reason
        super().__init__(f"{directory}: {file}: {reason}. Mend the file or forge it again.")


class EngineUnavailable(SandboxError):
    """No container engine answers."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"no container engine answers ({reason}). Start Docker (`systemctl start docker`), or "
            "do without: `--engine wasm` or TOOLWRIGHT_ENGINE=wasm runs servers on the embedded "
            "WASM engine, after `toolwright setup --engine wasm`. In a checkout, as root on Debian "
            "or Ubuntu, `./scripts/test --install-engine` installs Docker."
        )


class EngineAbsent(EngineUnavailable):
    """There is no container engine here at all: nobody listens, or not for this user."""


class BaseImageMissing(SandboxError):
    def __init__(self, image: str) -> None:
        super().__init__(f"the base image {image} is missing. Run `toolwright setup` to build it.")


class BaseImageBuildFailed(SandboxError):
    def __init__(self, step: str, output: str) -> None:
        super().__init__(f"building the base image failed at {step}:\n{output}")


class ComponentMissing(SandboxError):
    """The WASM engine's component cannot be used."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the WASM engine has no component ({reason}). Run `toolwright setup` to build it."
        )


class ComponentBuildFailed(SandboxError):
    def __init__(self, step: str, output: str) -> None:
        super().__init__(f"building the WASM component failed at {step}:\n{output}")


NO_ENGINE = (EngineUnavailable, BaseImageMissing, ComponentMissing)
"""No engine can run anything at present; no fault of the bundle that was to run."""


class SessionBroken(SandboxError):
    """The container ended or broke the protocol; the session is over."""


class SessionStopped(SessionBroken):
    """The session was ended because of another of its calls."""

    def __init__(self, other: str) -> None:
        super().__init__(
            f"another call of its server, {other}, gave no answer, and their sandbox was stopped; "
            "call again"
        )


class LoadFailed(SandboxError):
    """The runtime refused the bundle's code. The message is the runtime's, bounded."""


class CallTimedOut(SandboxError):
    def __init__(self, tool: str, seconds: float) -> None:
        super().__init__(f"{tool} gave no answer within {seconds:g} s; its sandbox was stopped.")


class UpstreamUnreachable(SandboxError):
    """The API could not be reached, or the connection broke off. The message gives the reason.
    `unsent` is whether there was no connection, so that nothing of the request was sent.
    """

    def __init__(self, message: str, *, unsent: bool = False) -> None:
        super().__init__(message)
        self.unsent = unsent


class AddressNotAllowed(UpstreamUnreachable):
    """A host is at a private address, and nobody allowed that. Nothing was sent."""


class RateLimited(SandboxError):
    """An upstream asked for a pause longer than the caller's patience; `seconds` of it are left."""

    def __init__(self, origin: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"{origin} asked for a pause, which lasts another {seconds:.0f} s")


class TurnTooLate(SandboxError):
    """The server's own rate limit, learned or documented, delays the request past the caller's
    patience. `seconds` is the wait until its turn.
    """

    def __init__(self, pace: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            f"its turn comes in {seconds:.0f} s only: it keeps to {pace}, as that host's refusals "
            "taught or its documentation says. Ask for less at once, or later."
        )


class CredentialRefused(SandboxError):
    """A credential cannot be obtained or added. The message holds no secret and says what to do."""


class ResponseTooLarge(SandboxError):
    """An answer is larger than it may be. `status` is its status, 0 where that is not known, and
    `size` the bytes that it said to have, 0 where it said nothing.
    """

    def __init__(self, limit: int, status: int = 0, size: int = 0) -> None:
        self.status = status
        said = f"the answer has {size} bytes, more than" if size else "the answer is larger than"
        super().__init__(f"{said} the {limit} bytes that are taken of one")


class BytesExhausted(SandboxError):
    """A call, its server or its process holds as many bytes as it may. The message says which.
    `status` is that of the answer it happened on, 0 where there is none.
    """

    status = 0


class Frozen(SandboxError):
    def __init__(self) -> None:
        super().__init__("Toolwright is frozen. A person can lift it with `toolwright unfreeze`.")


class DefinitionsChanged(SandboxError):
    """A third-party server's tool definitions differ from those it was registered with."""

    def __init__(self, server: str, changes: tuple[str, ...]) -> None:
        self.changes = changes
        told = "; ".join(changes[:10])
        super().__init__(
            f"{server} lists other tool definitions than it was registered with ({told}). It was "
            "stopped; look at what it is now, and `toolwright add` it again if that is right."
        )


class PermissionMissing(SandboxError):
    """A server needs a permission or value that was not granted or does not exist."""

    def __init__(self, server: str, permission: str, reason: str) -> None:
        super().__init__(f"{server}: {permission}: {reason}")


class NotOnThisEngine(SandboxError):
    def __init__(self, server: str) -> None:
        super().__init__(
            f"{server} is a third-party server, which is a program of its own, and the WASM engine "
            "runs only code written for our runtime. Install Docker and use `--engine docker`."
        )


class PackagesNeedDocker(SandboxError):
    def __init__(self, server: str) -> None:
        super().__init__(
            f"{server} imports packages of PyPI, which the WASM engine cannot load: it has the "
            "standard library alone. Do without them, or install Docker and use `--engine docker`."
        )


class NetworkRefused(SandboxError):
    """A network request beside HTTP that the server did not declare or nobody granted."""

    def __init__(self, permission: str) -> None:
        super().__init__(
            f"{permission[:300]} is refused: the tool does not declare it, or nobody granted it. "
            "A person grants what a server declares with `toolwright grant SERVER PERMISSION`."
        )


class PathRefused(SandboxError):
    """A path that no server may be given, or that changed since it was granted."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is refused: {reason}. Name a plain directory or file of yours.")


class ArchiveRefused(SandboxError):
    """An archive was refused; nothing of it was left on disk."""

    def __init__(self, member: str, reason: str) -> None:
        super().__init__(f"the archive is refused at {member[:200]!r}: {reason}")


class PackageUnusable(SandboxError):
    """A package could not be fetched, locked or added to an image. The message says what to do."""
