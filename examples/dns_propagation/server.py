"""A check that a change in the name system has reached the big resolvers."""

from toolwright import network, tool

SERVERS = ("1.1.1.1:53", "8.8.8.8:53", "9.9.9.9:53")


@tool
def dns_propagation(name, type, expected):
    """Which resolvers give the expected value, and what the others give."""
    asked = {server: network.dns(name, type, server) for server in SERVERS}
    wanted = expected.strip('"').rstrip(".").lower()
    missing = {}
    for server, told in asked.items():
        given = sorted(answer.strip('"').rstrip(".").lower() for answer in told["answers"])
        if wanted not in given:
            missing[server] = given or [told["rcode"]]
    ttls = [told["ttl"] for told in asked.values() if told["ttl"] is not None]
    return {"everywhere": not missing, "missing": missing, "longest_ttl": max(ttls, default=0)}
