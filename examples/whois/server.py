"""The answer of the root of the whois tree about a domain (RFC 3912)."""

import re

from toolwright import ToolError, network, tool

SERVER, PORT = "whois.iana.org", 43
DOMAIN = re.compile(r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*")


@tool
def whois(domain):
    """The fields that are known of a domain, and which server knows more."""
    name = domain.strip().lower().rstrip(".")
    if not DOMAIN.fullmatch(name):
        raise ToolError(f"{domain!r} is no domain name")
    said = network.tcp(SERVER, PORT, name + "\r\n").decode("utf-8", "replace")
    fields = {}
    for line in said.splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip() and not line.startswith("%"):
            fields.setdefault(key.strip().lower(), []).append(value.strip())
    if not fields:
        raise ToolError(f"nothing is known of {name}")
    return {"domain": name, "refer": fields.get("refer", [""])[0], "fields": fields}
