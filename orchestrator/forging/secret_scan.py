"""Looking for secrets in what somebody hands in: code, tests, cases, a server's files, a command.

It is done before any of it is stored or shown. What is found is named by its place and kind alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import AddFailed, SecretHandedIn
from orchestrator.forging.thirdparty.source import ScriptSource, Source, list_words
from registry.errors import KeyUnusable, VaultDamaged
from registry.secrets.vault import Vault, list_own_secrets
from sandbox.plain_secrets import (
    PlainSecret,
    find_credentials,
    find_secrets,
    find_secrets_in_code,
    find_secrets_in_json,
    find_secrets_in_words,
)
from sandbox.schemas.validator import SchemaViolation
from sandbox.wire.redaction import Redaction, list_sensitive_parts

CODE = ("code", "tests")
"""The parts of a draft that are Python."""
MIN_KNOWN = 8
"""A shorter secret of the vault occurs in code that has nothing to do with it."""
OF_THE_VAULT = "a secret of your vault"
SHOWN = "a credential that the task or its documentation shows"
MAX_FILE = 8 * 1024 * 1024
ADVICE = (
    "take it out, keep it with `toolwright secret set SERVER.NAME`, and let the server's "
    "credentials, or the permission env:NAME, give it; in tests and cases write an example such as "
    "`example-token`"
)


@dataclass(frozen=True)
class KnownSecrets:
    """Secrets that are known by their values, and what is told of one that is found."""

    kind: str
    hide: Redaction


@dataclass(frozen=True)
class SecretScan:
    """Finds secrets by their form, and those of the `vault`, and credentials that texts about the
    task show, by what they are.
    """

    vault: Vault | None = None

    def find_problems(
        self, content: Mapping[str, Any], texts: Iterable[str] = ()
    ) -> tuple[SchemaViolation, ...]:
        """What is wrong with a draft's content: the secrets in it. `texts` are those that it was
        written from.
        """
        known = self._load_known(texts)
        problems = []
        for key, value in content.items():
            for place, secret in _iterate_secrets(key, value, known):
                # A name on the way to a value can be a secret itself.
                named = find_secrets(place) or _find_known(place, known)
                problems.append(
                    SchemaViolation(f"/{key}" if named else place, render_secret(secret))
                )
        return tuple(problems)

    def mask_content(self, content: Mapping[str, Any], texts: Iterable[str] = ()) -> dict[str, Any]:
        """The content without those of its parts that hold secrets."""
        known = self._load_known(texts)
        return {
            key: value
            for key, value in content.items()
            if next(_iterate_secrets(key, value, known), None) is None
        }

    def check_files(self, directory: Path, names: Iterable[str]) -> None:
        """Raises SecretHandedIn where one of a server's files holds a secret."""
        known = self._load_known()
        for name in names:
            text = _read_text(directory / name)
            if name.endswith(".py"):
                found = find_secrets_in_code(text)
            else:
                # What a description gives as examples is in these; a person wrote the others.
                found = () if name in ("spec.json", "tools.json") else find_secrets(text)
            for secret in (*found, *_find_known(text, known)):
                raise SecretHandedIn(name, render_secret(secret))

    def _load_known(self, texts: Iterable[str] = ()) -> tuple[KnownSecrets, ...]:
        """What knows the vault's secrets, unless it has none or cannot be opened, and the
        credentials that the texts show.
        """
        shown = sorted({value for text in texts for value in find_credentials(text)})
        found = [KnownSecrets(SHOWN, Redaction(shown))] if shown else []
        if self.vault is None:
            return tuple(found)
        try:
            values = [self.vault.get(*name) for name in list_own_secrets(self.vault)]
        except (KeyUnusable, VaultDamaged):
            return tuple(found)  # Whoever needs its secrets is told what is wrong with it.
        parts = [part for v in values if v is not None for part in list_sensitive_parts(v.reveal())]
        kept = [part for part in parts if len(part) >= MIN_KNOWN]
        own = [KnownSecrets(OF_THE_VAULT, Redaction(kept))] if kept else []
        return (*own, *found)


def render_secret(secret: PlainSecret) -> str:
    """What is told of a secret: its line, its kind, and what to do."""
    return f"line {secret.line}: {secret.kind} stands in it; {ADVICE}"


def check_source(source: Source) -> None:
    """Raises AddFailed where the command of a third-party server, or its script, holds a secret."""
    found = [f"the command ({kind})" for kind in find_secrets_in_words(list_words(source))]
    if isinstance(source, ScriptSource):
        secrets = find_secrets_in_code(_read_text(source.path))
        found += [f"{source.path.name} line {each.line} ({each.kind})" for each in secrets]
    for where in found:
        raise AddFailed(
            f"{where} holds a secret, which would be stored and shown in plain text. Keep it with "
            "`toolwright secret set NAME.KEY`, and give it with --env KEY=@KEY."
        )


def _iterate_secrets(
    key: str, value: Any, known: Sequence[KnownSecrets]
) -> Iterator[tuple[str, PlainSecret]]:
    """The secrets of one part of a draft, each with the pointer to it."""
    if key in CODE and isinstance(value, str):
        found = (*find_secrets_in_code(value), *_find_known(value, known))
        yield from ((f"/{key}", secret) for secret in found)
        return
    yield from find_secrets_in_json({key: value})
    if not known:
        return
    pending: list[tuple[str, Any]] = [(f"/{key}", value)]
    while pending:
        place, node = pending.pop()
        if isinstance(node, Mapping):
            pending += [(f"{place}/{str(name)[:60]}", item) for name, item in node.items()]
            pending += [(place, str(name)) for name in node]
        elif isinstance(node, list):
            pending += [(f"{place}/{at}", item) for at, item in enumerate(node)]
        elif isinstance(node, str):
            yield from ((place, secret) for secret in _find_known(node, known))


def _find_known(text: str, known: Sequence[KnownSecrets]) -> tuple[PlainSecret, ...]:
    """The first known secret in a text, in any form that redaction knows, with its line."""
    for each in known:
        if each.hide.redact_text(text) == text:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if each.hide.redact_text(line) != line:
                return (PlainSecret(number, each.kind),)
        return (PlainSecret(1, each.kind),)
    return ()


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE).decode("utf-8", "replace")
    except OSError:
        return ""
