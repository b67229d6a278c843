"""A model whose answers are recorded: each is what one said to that very prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from forge.author import Ask, Reply
from forge.errors import AuthorFailed
from orchestrator.metering import digest_of
from sandbox.validation import checker

READINGS = Path(__file__).parent / "readings"
REPAIRS = Path(__file__).parent / "mended"


@dataclass(frozen=True)
class Recorded:
    """Answers from a directory. A question that has none there is left in `pending` for a model to
    answer: its prompt as `DIRECTORY-DIGEST.md`, the answer to come as `DIGEST.json` in `directory`.
    """

    directory: Path
    pending: Path | None = None
    name: str = "a recorded model"

    async def write(self, ask: Ask) -> Reply:
        """Raises AuthorFailed where the question was not answered, or in another form."""
        digest = digest_of(ask)[:24]
        path = self.directory / f"{digest}.json"
        if not path.exists():
            if self.pending is not None:
                told = f"{ask.prompt}\n\n# Its schema\n{json.dumps(dict(ask.answer))}\n"
                (self.pending / f"{self.directory.name}-{digest}.md").write_text(told)
            raise AuthorFailed("unavailable", "this question was not recorded")
        content = json.loads(path.read_text())
        if problem := checker(ask.answer).problem(content):
            raise AuthorFailed("malformed", f"{problem.where}: {problem.reason}")
        return Reply(content, "recorded", 0, 0, 0.0)
