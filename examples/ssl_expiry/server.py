"""The time for which the certificate of a host is still valid."""

from datetime import date, datetime

from toolwright import ToolError, network, tool

PORT = 443


@tool
def ssl_expiry(host, on, warn=14):
    """The days from a date until the certificate of a host ends."""
    try:
        day = date.fromisoformat(on)
    except ValueError as error:
        raise ToolError(f"{on!r} is no date such as 2027-01-31") from error
    shown = network.tls_peer(host, PORT)
    days = (datetime.fromisoformat(shown["not_after"]).date() - day).days
    if not shown["verified"]:
        state = "bad"
    else:
        state = "ended" if days < 0 else "soon" if days <= warn else "good"
    return {"state": state, "days": days, "problem": shown["problem"], "issuer": shown["issuer"]}
