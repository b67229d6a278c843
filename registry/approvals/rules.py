"""Table of approval rules: signed permissions for writes with certain arguments until a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text, to_canonical_json
from registry.errors import DuplicateRow, RowNotFound

MAX_SECONDS = 366 * 86400.0
MAX_CONDITIONS = 50
USED, REVOKED = "rule.used", "rule.revoked"
_TEXT = 2_000


@dataclass(frozen=True)
class Condition:
    """A condition on one argument. `path` names it, with dots into objects: `body.zone`.

    The argument either equals `equals` as a JSON value, or is a string that matches `pattern`, in
    which `*` stands for any characters except a slash or a line break.
    """

    path: str
    equals: Any = None
    pattern: str = ""


@dataclass(frozen=True)
class ApprovalRule:
    """A rule that allows calls of a tool without further confirmation, signed by its author.

    `version` and `digest` are those of the server when the rule was made, or None and "" for a rule
    that also covers later versions, as long as the same `author` (compiler, client, person…) makes
    them and the tool still asks for what was approved: the request `method` `url` (without its
    query) and, of GraphQL, the sha256 of its `document`. `operation` is the digest of what the
    tool's operation does, which the rule covers and no other under that name. `expires` is in epoch
    seconds; `max_uses` is None for no limit.
    """

    id: str
    server: str
    tool: str
    version: int | None
    digest: str
    where: tuple[Condition, ...]
    created: float
    expires: float
    max_uses: int | None
    by: str
    approval: str
    operation: str = ""
    signature: str = field(default="", repr=False)
    author: str = ""
    method: str = ""
    url: str = ""
    document: str = ""
    uses: int = 0
    revoked: float | None = None
    revoked_by: str = ""

    def to_signed_body(self) -> dict[str, Any]:
        """The signed JSON value: all fields except uses and revocation, which change later."""
        return {
            "kind": "rule",
            "id": self.id,
            "server": self.server,
            "tool": self.tool,
            "version": self.version,
            "digest": self.digest,
            "where": [vars(condition) for condition in self.where],
            "created": self.created,
            "expires": self.expires,
            "max_uses": self.max_uses,
            "by": self.by,
            "approval": self.approval,
            "operation": self.operation,
            "author": self.author,
            "request": {"method": self.method, "url": self.url, "document": self.document},
        }

    def is_live(self, now: float) -> bool:
        """Whether the rule is neither revoked nor expired nor used up at `now`."""
        left = self.max_uses is None or self.uses < self.max_uses
        return self.revoked is None and left and self.created <= now < self.expires


class RuleTable(Repository):
    """Rules by id. Uses and revocations that the audit records count, whatever the rule's row says.

    Callers verify the signatures (`registry.secrets.signing`).
    """

    def add(self, rule: ApprovalRule) -> None:
        """Store a signed rule. Raises Duplicate; Unknown for the server."""
        with self._database.write() as connection:
            if _find_row(connection, rule.id) is not None:
                raise DuplicateRow("rule", rule.id)
            entries = tables.entries
            known = select(entries.c.name).where(entries.c.name == rule.server)
            if connection.execute(known).first() is None:
                raise RowNotFound("server", rule.server)
            row = {
                "id": rule.id,
                "entry": rule.server,
                "tool": rule.tool,
                "body": to_canonical_json(rule.to_signed_body()),
                "signature": rule.signature,
                "created": rule.created,
                "uses": 0,
                "revoked": None,
                "revoked_by": "",
            }
            connection.execute(insert(tables.rules), row)
            self._append_audit_row(
                connection, "rule.added", rule.id, rule.to_signed_body(), rule.created
            )

    def find(self, server: str | None = None, tool: str | None = None) -> tuple[ApprovalRule, ...]:
        """All rules, of a server or of one tool where that is named, oldest first.

        A row that cannot be read is left out.
        """
        rules = tables.rules
        query = select(rules).order_by(rules.c.created, rules.c.id)
        if server is not None:
            query = query.where(rules.c.entry == server)
        if tool is not None:
            query = query.where(rules.c.tool == tool)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
            found = (_parse_row(row, _read_history(connection, row["id"])) for row in rows)
            return tuple(rule for rule in found if rule is not None)

    def get(self, id: str) -> ApprovalRule:
        """Raises Unknown."""
        found = [rule for rule in self.find() if rule.id == id]
        if not found:
            raise RowNotFound("rule", id)
        return found[0]

    def count_use(self, id: str, call: str, tool: str, now: float) -> bool:
        """Count a use before the call is made. False where the rule is no longer live."""
        with self._database.write() as connection:
            row = _find_row(connection, id)
            rule = row and _parse_row(row, _read_history(connection, id))
            if not rule or not rule.is_live(now):
                return False
            rules = tables.rules
            counted = update(rules).where(rules.c.id == id).values(uses=rule.uses + 1)
            connection.execute(counted)
            payload = {"call": call, "tool": tool, "use": rule.uses + 1}
            self._append_audit_row(connection, USED, id, payload, now)
        return True

    def revoke(self, id: str, by: str, now: float) -> bool:
        """End a rule; False where it was revoked already. Raises Unknown."""
        who = clean_text(by, _TEXT)
        with self._database.write() as connection:
            row = _find_row(connection, id)
            if row is None:
                raise RowNotFound("rule", id)
            if row["revoked"] is not None:
                return False
            rules = tables.rules
            ended = update(rules).where(rules.c.id == id).values(revoked=now, revoked_by=who)
            connection.execute(ended)
            self._append_audit_row(connection, REVOKED, id, {"by": who}, now)
        return True


def parse_rule(body: Mapping[str, Any], signature: str) -> ApprovalRule:
    """The rule of a signed body. Raises ValueError, TypeError or KeyError where it is malformed."""
    where = tuple(
        Condition(str(one["path"]), one["equals"], str(one["pattern"])) for one in body["where"]
    )
    version, max_uses, asked = body["version"], body["max_uses"], body["request"]
    return ApprovalRule(
        id=str(body["id"]),
        server=str(body["server"]),
        tool=str(body["tool"]),
        version=None if version is None else int(version),
        digest=str(body["digest"]),
        where=where,
        created=float(body["created"]),
        expires=float(body["expires"]),
        max_uses=None if max_uses is None else int(max_uses),
        by=str(body["by"]),
        approval=str(body["approval"]),
        operation=str(body.get("operation", "")),
        author=str(body["author"]),
        method=str(asked["method"]),
        url=str(asked["url"]),
        document=str(asked["document"]),
        signature=signature,
    )


def _find_row(connection: Connection, id: str) -> RowMapping | None:
    query = select(tables.rules).where(tables.rules.c.id == id)
    return connection.execute(query).mappings().first()


def _read_history(connection: Connection, id: str) -> Mapping[str, tuple[int, float]]:
    """The number of audit rows about a rule and the time of the first, by kind."""
    audit = tables.audit
    query = (
        select(audit.c.kind, func.count().label("times"), func.min(audit.c.time).label("first"))
        .where(audit.c.subject == id, audit.c.kind.in_((USED, REVOKED)))
        .group_by(audit.c.kind)
    )
    return {row.kind: (row.times, row.first) for row in connection.execute(query)}


def _parse_row(row: RowMapping, history: Mapping[str, tuple[int, float]]) -> ApprovalRule | None:
    """The rule of a row; None where its body is malformed or has another id, server or tool."""
    try:
        rule = parse_rule(json.loads(row["body"]), row["signature"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if (rule.id, rule.server, rule.tool) != (row["id"], row["entry"], row["tool"]):
        return None
    used, _ = history.get(USED, (0, 0.0))
    _, revoked = history.get(REVOKED, (0, row["revoked"]))
    return ApprovalRule(
        **{
            **vars(rule),
            "uses": max(used, row["uses"]),
            "revoked": row["revoked"] if row["revoked"] is not None else revoked,
            "revoked_by": row["revoked_by"],
        }
    )
