"""Counts what a container wrote to its log, as Docker's json-file driver keeps it."""

import json

from toolwright import ToolError, tool

LEVELS = ("error", "warning", "info", "debug")
ALSO = {"fatal": "error", "critical": "error", "warn": "warning"}


@tool
def summarize_log(log):
    """Lines by level, the first and last time, and the lines that are errors."""
    counts = dict.fromkeys((*LEVELS, "other"), 0)
    times, errors = [], []
    for number, line in enumerate(log.splitlines(), 1):
        if not line.strip():
            continue
        text, time = read_line(line, number)
        level = find_level(text)
        counts[level] += 1
        times.append(time)
        if level == "error":
            errors.append(text)
    if not times:
        raise ToolError("the log has no lines")
    return {"counts": counts, "first": min(times), "last": max(times), "errors": errors}


def read_line(line, number):
    """The text and the time of a line."""
    try:
        entry = json.loads(line)
        return str(entry["log"]).strip(), str(entry["time"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ToolError(f"line {number} is none of Docker's: {error!r}") from error


def find_level(text):
    """The level that a text names first, as a word of its own."""
    for word in text.lower().split():
        name = word.strip("[]():,.=")
        level = ALSO.get(name, name)
        if level in LEVELS:
            return level
    return "other"
