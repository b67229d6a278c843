"""The exceptions of the forge. Each message says what to do next."""

from __future__ import annotations

from typing import Literal

AuthorFailure = Literal["malformed", "endless", "timeout", "refused", "unavailable"]
_ADVICE: dict[AuthorFailure, str] = {
    "malformed": "Try a model that keeps to a JSON schema.",
    "endless": "Try another model, or a smaller task.",
    "timeout": "Check that the endpoint is up, or raise TOOLWRIGHT_MODEL_SECONDS.",
    "refused": "Check OPENAI_API_KEY, OPENAI_MODEL and OPENAI_BASE_URL; `toolwright doctor` does.",
    "unavailable": "Check OPENAI_BASE_URL, or wait and try again.",
}


class ForgeError(Exception):
    """The base class of all exceptions of this folder."""


class DocumentError(ForgeError):
    """A document cannot be used at all. `file` is its path or URL, `reason` the cause without
    advice.
    """

    def __init__(self, file: str, reason: str, advice: str) -> None:
        self.file, self.reason = file, reason
        super().__init__(f"{file}: {reason}. {advice}")


class DocumentUnreadable(DocumentError):
    """The bytes cannot be read, or are neither JSON nor YAML."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(file, reason, "Give the path or URL of a JSON or YAML API description.")


class DocumentEmpty(DocumentError):
    """The document has no content."""

    def __init__(self, file: str) -> None:
        super().__init__(
            file, "the document is empty", "Check that it was saved or downloaded completely."
        )


class DocumentTooLarge(DocumentError):
    """Too many bytes, too many values once its aliases are expanded, or nested too deeply."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(file, reason, "Split it, or cut it down to the operations you need.")


class DocumentRecursive(DocumentError):
    """A value of the document contains itself."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(
            file, reason, "Break the circle: let one of the two refer to a schema by `$ref`."
        )


class NotAnApiDescription(DocumentError):
    """The document parses but describes no API: it is not OpenAPI 2.0 or 3.x, nor GraphQL, nor
    recorded requests.
    """

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(
            file,
            reason,
            "Give an OpenAPI document, a GraphQL introspection, a Postman collection, a HAR "
            "file or curl commands.",
        )


class NoUsableOperation(DocumentError):
    """No operation of the document can be compiled. `reason` names the first causes; `problems` are
    all of them (`forge.readers.document.DocumentProblem`).
    """

    def __init__(
        self, file: str, reason: str, problems: tuple[object, ...] = (), *, empty: bool = False
    ) -> None:
        self.problems = problems
        super().__init__(
            file,
            reason,
            "Give the whole description; an OpenAPI document has its operations under `paths`."
            if empty
            else "Mend the places named; `base_url` (--base-url at the terminal) replaces an "
            "unusable server.",
        )


class NoOperationChosen(DocumentError):
    """The document has operations, and none matches the patterns, tags or task that were given."""

    def __init__(self, file: str, patterns: str) -> None:
        super().__init__(
            file,
            f"no operation matches {patterns[:200]}",
            "Patterns match ids, paths, tags: `*pets*`.",
        )


class CredentialPlaceInvalid(ForgeError):
    """An `--auth` option does not say in a known form where a credential goes, or holds the secret
    itself. The message does not repeat what may be a secret.
    """

    def __init__(self, place: str, *, by_value: bool = False) -> None:
        why = "names no secret, and is no place for one itself" if by_value else "cannot be read"
        super().__init__(
            f"--auth {place[:80]}=… {why}. Write header:NAME (header:NAME:WORD where a word "
            "stands before the secret), query:NAME, cookie:NAME, bearer, basic or digest, and "
            "=@SECRET behind it: the name under which `toolwright secret set "
            "SERVER.SECRET`, or the file of --creds, knows its value."
        )


class CredentialPlaceUnknown(ForgeError):
    """The place of `secret set --auth` is in no known form."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"--auth {place[:80]} says no place. Write header:NAME (header:NAME:WORD where a word "
            "stands before the secret), query:NAME, cookie:NAME, bearer, basic or digest; "
            "`toolwright secret set SERVER.NAME --auth header:X-Token`, for example."
        )


class CredentialTaken(ForgeError):
    """A person declared a credential under the name of one that the description declares."""

    def __init__(self, server: str, name: str) -> None:
        super().__init__(
            f"{server} already has a credential {name}, which its description declares. Give yours "
            f"another name: `toolwright secret set {server}.OTHER --auth …`."
        )


class NameInvalid(ForgeError):
    """A requested server name is not allowed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} is not a server name. Use up to 40 lower-case letters, digits and "
            "underscores, beginning with a letter."
        )


class SourceUnreachable(ForgeError):
    """A host gives no answer at all. `reason` is the cause without advice."""

    def __init__(self, location: str, reason: str) -> None:
        self.location, self.reason = location, reason
        cause = reason if reason.endswith("?") else f"{reason.rstrip('.')}."
        super().__init__(
            f"{location} gives no answer: {cause} Check the address and that the API is running, "
            "or give its description as a file."
        )


class AuthorFailed(ForgeError):
    """A model gave no usable answer. `kind` classifies the failure; `tokens_in`, `tokens_out` and
    `seconds` were spent all the same.
    """

    def __init__(
        self,
        kind: AuthorFailure,
        reason: str,
        tokens_in: int = 0,
        tokens_out: int = 0,
        seconds: float = 0.0,
    ) -> None:
        self.kind, self.reason = kind, reason
        self.tokens_in, self.tokens_out, self.seconds = tokens_in, tokens_out, seconds
        super().__init__(f"the model gave no usable answer: {reason}. {_ADVICE[kind]}")


class DirectoryUnreadable(ForgeError):
    """An index of the directory of public APIs cannot be used."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the directory of public APIs cannot be read: {reason}. Install Toolwright again, or "
            "make the index anew with scripts/directory."
        )


class MemberMissing(ForgeError):
    """A description cannot be taken out of the directory's package."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}. Nothing of it was used. Give the path or URL of the API's description as "
            "the source."
        )
