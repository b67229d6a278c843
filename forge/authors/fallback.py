"""An author that asks others one after the other, where one does not answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from forge.authors.interface import Author, ModelReply, ModelRequest
from forge.errors import AuthorFailed

PASSED_ON: Final = frozenset({"timeout", "unavailable"})
"""Failures of an endpoint that is not there, after which another is asked. A refusal is an answer,
and what is malformed or too long has been paid for: those are told.
"""


@dataclass(frozen=True)
class FallbackAuthor:
    """Asks `authors`, of which there is at least one, in their order."""

    authors: tuple[Author, ...]

    @property
    def name(self) -> str:
        return self.authors[0].name

    async def write(self, ask: ModelRequest) -> ModelReply:
        """See `forge.authors.interface.Author`. Raises AuthorFailed as the last that was asked, and
        with the reasons of those before it.
        """
        failed: list[AuthorFailed] = []
        for author in self.authors:
            try:
                return await author.write(ask)
            except AuthorFailed as error:
                failed.append(error)
                if error.kind not in PASSED_ON:
                    break
        last = failed[-1]
        if len(failed) == 1:
            raise last
        reason = "; then ".join(each.reason for each in failed)
        raise AuthorFailed(
            last.kind,
            reason,
            sum(each.tokens_in for each in failed),
            sum(each.tokens_out for each in failed),
            sum(each.seconds for each in failed),
        ) from last
