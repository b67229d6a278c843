"""Everything fatal that the sandbox reports. Each message says what to do next."""

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
            f"no container engine answers ({reason}). Start Docker, or run the script with "
            "--install-engine on Debian or Ubuntu as root."
        )


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


class SessionBroken(SandboxError):
    """The container ended, or said something it must not; the session is over."""


class LoadFailed(SandboxError):
    """The runtime refused the bundle's code. The message is the runtime's, bounded."""


class CallTimedOut(SandboxError):
    def __init__(self, tool: str, seconds: float) -> None:
        super().__init__(f"{tool} gave no answer within {seconds:g} s; its container was stopped.")


class UpstreamUnreachable(SandboxError):
    """The API could not be reached, or broke off. The message says how."""


class ResponseTooLarge(SandboxError):
    def __init__(self, limit: int) -> None:
        super().__init__(f"the answer is larger than {limit} bytes")


class Frozen(SandboxError):
    def __init__(self) -> None:
        super().__init__("Toolwright is frozen. A person can lift it with `toolwright unfreeze`.")
