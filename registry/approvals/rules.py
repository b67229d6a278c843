"""Standing rules: writes that a person allows beforehand, for some arguments, until some time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from registry import schema
from registry.audit import Ledger
from registry.errors import Duplicate, Unknown
from registry.jsontext import canonical, clean

MAX_SECONDS = 366 * 86400.0
MAX_CONDITIONS = 50
USED, REVOKED = "rule.used", "rule.revoked"
_TEXT = 2_000


@dataclass(frozen=True)
class Condition:
    """An argument that has to be so. `path` names it, with dots into objects: `body.zone`.

    Either it is `equals`, as JSON, or it is a string that fits `pattern`, where `*` stands for any
    characters but a slash or a line break.
    """

    path: str
    equals: Any = None
    pattern: str = ""


@dataclass(frozen=True)
class Rule:
    """A write that needs no further confirmation. Signed by the person who made it.

    `version` and `digest` are the server's at that time, or None and "" for a rule that holds for
    later versions too. `expires` is in epoch seconds, `max_uses` None for as often as wanted.
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
    signature: str = field(default="", repr=False)
    uses: int = 0
    revoked: float | None = None
    revoked_by: str = ""

    def body(self) -> dict[str, Any]:
        """What is signed: everything but what happens to the rule afterwards."""
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
        }

    def live(self, now: float) -> bool:
        """Whether it may still be used: not revoked, expired or used up."""
        left = self.max_uses is None or self.uses < self.max_uses
        return self.revoked is None and left and self.created <= now < self.expires


class Rules(Ledger):
    """The rules. What an audit row says was used or revoked stays so, whatever the rule's row says.

    Whether a rule's signature fits is the reader's to check (`registry.signing.fits`).
    """

    def add_rule(self, rule: Rule) -> None:
        """Store a signed rule. Raises Duplicate; Unknown for the server."""
        with self._database.write() as connection:
            if _find(connection, rule.id) is not None:
                raise Duplicate("rule", rule.id)
            entries = schema.entries
            known = select(entries.c.name).where(entries.c.name == rule.server)
            if connection.execute(known).first() is None:
                raise Unknown("server", rule.server)
            row = {
                "id": rule.id,
                "entry": rule.server,
                "tool": rule.tool,
                "body": canonical(rule.body()),
                "signature": rule.signature,
                "created": rule.created,
                "uses": 0,
                "revoked": None,
                "revoked_by": "",
            }
            connection.execute(insert(schema.rules), row)
            self._append(connection, "rule.added", rule.id, rule.body(), rule.created)

    def rules(self, server: str | None = None, tool: str | None = None) -> tuple[Rule, ...]:
        """All rules, of a server or of one tool where that is named, oldest first.

        A row that cannot be read is left out.
        """
        rules = schema.rules
        query = select(rules).order_by(rules.c.created, rules.c.id)
        if server is not None:
            query = query.where(rules.c.entry == server)
        if tool is not None:
            query = query.where(rules.c.tool == tool)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
            found = (_rule(row, _history(connection, row["id"])) for row in rows)
            return tuple(rule for rule in found if rule is not None)

    def rule(self, id: str) -> Rule:
        """Raises Unknown."""
        found = [rule for rule in self.rules() if rule.id == id]
        if not found:
            raise Unknown("rule", id)
        return found[0]

    def use_rule(self, id: str, call: str, tool: str, now: float) -> bool:
        """Count a use, before it happens. False where the rule ended meanwhile."""
        with self._database.write() as connection:
            row = _find(connection, id)
            rule = row and _rule(row, _history(connection, id))
            if not rule or not rule.live(now):
                return False
            rules = schema.rules
            counted = update(rules).where(rules.c.id == id).values(uses=rule.uses + 1)
            connection.execute(counted)
            payload = {"call": call, "tool": tool, "use": rule.uses + 1}
            self._append(connection, USED, id, payload, now)
        return True

    def revoke_rule(self, id: str, by: str, now: float) -> bool:
        """End a rule; False where it was revoked already. Raises Unknown."""
        who = clean(by, _TEXT)
        with self._database.write() as connection:
            row = _find(connection, id)
            if row is None:
                raise Unknown("rule", id)
            if row["revoked"] is not None:
                return False
            rules = schema.rules
            ended = update(rules).where(rules.c.id == id).values(revoked=now, revoked_by=who)
            connection.execute(ended)
            self._append(connection, REVOKED, id, {"by": who}, now)
        return True


def rule_from(body: Mapping[str, Any], signature: str) -> Rule:
    """The rule of a signed body. Raises ValueError, TypeError or KeyError for what is none."""
    where = tuple(
        Condition(str(one["path"]), one["equals"], str(one["pattern"])) for one in body["where"]
    )
    version, max_uses = body["version"], body["max_uses"]
    return Rule(
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
        signature=signature,
    )


def _find(connection: Connection, id: str) -> RowMapping | None:
    query = select(schema.rules).where(schema.rules.c.id == id)
    return connection.execute(query).mappings().first()


def _history(connection: Connection, id: str) -> Mapping[str, tuple[int, float]]:
    """By kind, how many audit rows there are about a rule, and the time of the first."""
    audit = schema.audit
    query = (
        select(audit.c.kind, func.count().label("times"), func.min(audit.c.time).label("first"))
        .where(audit.c.subject == id, audit.c.kind.in_((USED, REVOKED)))
        .group_by(audit.c.kind)
    )
    return {row.kind: (row.times, row.first) for row in connection.execute(query)}


def _rule(row: RowMapping, history: Mapping[str, tuple[int, float]]) -> Rule | None:
    """The rule of a row, or None where its body is not one of that id, server and tool."""
    try:
        rule = rule_from(json.loads(row["body"]), row["signature"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if (rule.id, rule.server, rule.tool) != (row["id"], row["entry"], row["tool"]):
        return None
    used, _ = history.get(USED, (0, 0.0))
    _, revoked = history.get(REVOKED, (0, row["revoked"]))
    return Rule(
        **{
            **vars(rule),
            "uses": max(used, row["uses"]),
            "revoked": row["revoked"] if row["revoked"] is not None else revoked,
            "revoked_by": row["revoked_by"],
        }
    )
