"""Sending messages through Apprise. Loaded only to send one: Apprise is an extra."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

import apprise

# It logs URLs, which are credentials, and what it cannot send is told by `deliver`.
logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)


@dataclass(frozen=True)
class Button:
    """A link of a message. A `post` is sent by the service that shows the button, where it can."""

    title: str
    url: str
    post: bool = True


def send_message(url: str, title: str, text: str, buttons: Iterable[Button] = ()) -> str:
    """Send a message to one of Apprise's URLs; the reason why it failed, "" where it was sent.

    ntfy gets the buttons as actions, every other service as links in the text.
    """
    shown = tuple(buttons)
    body = text
    if _is_ntfy(url) and shown:
        # ntfy shows at most three: https://docs.ntfy.sh/publish/#action-buttons
        url = (
            f"{url}{'&' if '?' in url else '?'}actions={quote(_render_actions(shown[:3]), safe='')}"
        )
    elif shown:
        body += "\n\n" + "\n".join(f"{button.title}: {button.url}" for button in shown)
    sender = apprise.Apprise()
    if not sender.add(url):
        return "Apprise does not know this kind of URL"
    sent = sender.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT)
    return "" if sent else "the service did not take the message"


def _is_ntfy(url: str) -> bool:
    return url.lower().startswith(("ntfy://", "ntfys://"))


def _render_actions(buttons: Iterable[Button]) -> str:
    return "; ".join(
        f"http, {button.title}, {button.url}, method=POST, clear=true"
        if button.post
        else f"view, {button.title}, {button.url}"
        for button in buttons
    )
