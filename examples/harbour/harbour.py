"""The harbour itself: berths, boats and bookings, in memory."""

from __future__ import annotations

import datetime
import threading
from collections import Counter
from typing import Any

STATES = ("free", "taken", "booked", "closed")
KINDS = ("sail", "motor", "rowing")
SERVICES = ("water", "power", "cleaning")

Json = dict[str, Any]


class Refused(Exception):
    """An answer other than the wanted one: an HTTP status and a Problem."""

    def __init__(self, status: int, error: str, field: str = "") -> None:
        self.status = status
        self.problem = {"error": error} | ({"field": field} if field else {})
        super().__init__(error)


class Harbour:
    """Every method is one operation of `openapi.json`. Safe to call from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bookings: dict[int, Json] = {}
        self._next = 1
        self._berths: dict[int, Json] = {
            number: {"number": number, "state": "free", "max_length": length, "boat": None}
            for number, length in enumerate((6.0, 6.0, 8.0, 8.0, 10.5, 12.0, 15.0, 20.0), start=1)
        }
        self._moor(2, {"name": "Heron", "length": 5.4, "kind": "rowing", "owner": {"name": "Ada"}})
        self._moor(5, {"name": "Brisk", "length": 9.8, "kind": "sail", "owner": {"name": "Tove"}})
        self._moor(7, {"name": "Lantern", "length": 13.2, "kind": "motor"})
        self._berths[8]["state"] = "closed"

    def berths(self, state: str | None, min_length: float) -> list[Json]:
        if state is not None and state not in STATES:
            raise Refused(422, f"state is one of {', '.join(STATES)}", "state")
        with self._lock:
            return [
                dict(berth)
                for berth in self._berths.values()
                if state in (None, berth["state"]) and berth["max_length"] >= min_length
            ]

    def berth(self, number: int) -> Json:
        with self._lock:
            return dict(self._berth(number))

    def boats(self, query: str, kinds: list[str]) -> list[Json]:
        if not query:
            raise Refused(422, "query is missing", "query")
        if set(kinds) - set(KINDS):
            raise Refused(422, f"kind is one of {', '.join(KINDS)}", "kind")
        with self._lock:
            return [
                {"berth": number, "boat": berth["boat"]}
                for number, berth in self._berths.items()
                if berth["boat"]
                and query.lower() in _names(berth["boat"])
                and (not kinds or berth["boat"]["kind"] in kinds)
            ]

    def bookings(self) -> list[Json]:
        with self._lock:
            return [dict(booking) for booking in self._bookings.values()]

    def book(self, request: Any) -> Json:
        booking = _booking(request)
        with self._lock:
            berth = self._berth(booking["berth"])
            if berth["state"] != "free":
                raise Refused(409, f"berth {berth['number']} is {berth['state']}", "berth")
            if booking["boat"]["length"] > berth["max_length"]:
                raise Refused(409, f"the berth is {berth['max_length']} m long", "boat.length")
            berth["state"] = "booked"
            booking = {"id": self._next, **booking}
            self._bookings[self._next] = booking
            self._next += 1
            return dict(booking)

    def cancel(self, number: int) -> None:
        with self._lock:
            if number not in self._bookings:
                raise Refused(404, f"there is no booking {number}")
            self._berths[self._bookings.pop(number)["berth"]]["state"] = "free"

    def report(self) -> Json:
        with self._lock:
            states = Counter(berth["state"] for berth in self._berths.values())
            return {"berths": len(self._berths), "states": dict(states)}

    def _berth(self, number: int) -> Json:
        if number not in self._berths:
            raise Refused(404, f"there is no berth {number}")
        return self._berths[number]

    def _moor(self, number: int, boat: Json) -> None:
        self._berths[number] |= {"state": "taken", "boat": boat}


def _names(boat: Json) -> str:
    return f"{boat['name']}\n{boat.get('owner', {}).get('name', '')}".lower()


def _booking(request: Any) -> Json:
    """A BookingRequest with its services filled in. Raises Refused 422, naming the field."""
    fields = {"berth", "boat", "arrival", "nights", "services"}
    _check(isinstance(request, dict), "the body is not an object", "")
    _check(set(request) <= fields, f"the fields are {', '.join(sorted(fields))}", "")
    _check(_whole(request.get("berth"), 1, None), "berth is a number from 1", "berth")
    _check(_whole(request.get("nights"), 1, 365), "nights is a number from 1 to 365", "nights")
    services = request.get("services", [])
    _check(
        isinstance(services, list) and all(service in SERVICES for service in services),
        f"services are {', '.join(SERVICES)}",
        "services",
    )
    try:
        datetime.date.fromisoformat(request.get("arrival"))
    except (TypeError, ValueError):
        raise Refused(422, "arrival is a date such as 2026-07-01", "arrival") from None
    _check_boat(request.get("boat"))
    return {**request, "services": services}


def _check_boat(boat: Any) -> None:
    _check(isinstance(boat, dict), "boat is an object", "boat")
    _check(_text(boat.get("name")), "a boat has a name", "boat.name")
    length = boat.get("length")
    number = isinstance(length, int | float) and not isinstance(length, bool)
    _check(number and 0 < length <= 100, "length is metres, up to 100", "boat.length")
    _check(boat.get("kind") in KINDS, f"kind is one of {', '.join(KINDS)}", "boat.kind")
    owner = boat.get("owner", {"name": "nobody"})
    _check(isinstance(owner, dict) and _text(owner.get("name")), "owner has a name", "boat.owner")


def _check(holds: bool, error: str, field: str) -> None:
    if not holds:
        raise Refused(422, error, field)


def _text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 80


def _whole(value: Any, least: int, most: int | None) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and value >= least and (most is None or value <= most)
