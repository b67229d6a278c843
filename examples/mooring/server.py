"""Four calls of the harbour's own tools as one."""

from toolwright import ToolError, servers, tool


def ask(name, arguments):
    """The body that a tool of the server `harbour` gives."""
    return servers.call("harbour." + name, arguments)["body"]


def chosen(boat):
    """The boat, its berth, and the smallest free berth that it fits in and nobody has booked."""
    found = [each for each in ask("search_boats", {"query": boat}) if each["boat"]["name"] == boat]
    if len(found) != 1:
        raise ToolError(f"{len(found)} boats are named {boat}")
    moored = found[0]
    length = moored["boat"]["length"]
    now = ask("get_berth", {"number": moored["berth"]})
    free = ask("list_berths", {"state": "free", "min_length": length})
    booked = {booking["berth"] for booking in ask("list_bookings", {})}
    fitting = [berth for berth in free if berth["number"] not in booked]
    if not fitting:
        raise ToolError(f"no berth is free for {boat}, which is {length} m long")
    best = min(fitting, key=lambda berth: (berth["max_length"], berth["number"]))
    return moored["boat"], now, best


@tool
def find_berth(boat):
    """Where a boat lies, and the free berth that fits it best."""
    known, now, best = chosen(boat)
    spare = round(best["max_length"] - known["length"], 2)
    return {"from": now["number"], "to": best["number"], "spare": spare}


@tool
def move_boat(boat, arrival, nights):
    """Book the free berth that fits a boat best."""
    known, now, best = chosen(boat)
    body = {"berth": best["number"], "boat": known, "arrival": arrival, "nights": nights}
    booking = ask("book_berth", {"body": body})
    return {"booking": booking["id"], "from": now["number"], "to": booking["berth"]}
