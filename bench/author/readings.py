"""A model whose answers are recorded: each is what one said to that very prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from forge.authors.interface import ModelReply, ModelRequest
from forge.errors import AuthorFailed
from orchestrator.forging.authors.metering import hash_request
from sandbox.schemas.validator import get_checker

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

    async def write(self, ask: ModelRequest) -> ModelReply:
        """Raises AuthorFailed where the question was not answered, or in another form."""
        digest = hash_request(ask)[:24]
        path = self.directory / f"{digest}.json"
        if not path.exists():
            if self.pending is not None:
                told = f"{ask.prompt}\n\n# Its schema\n{json.dumps(dict(ask.answer))}\n"
                (self.pending / f"{self.directory.name}-{digest}.md").write_text(told)
            raise AuthorFailed("unavailable", "this question was not recorded")
        content = json.loads(path.read_text())
        if problem := get_checker(ask.answer).find_problem(content):
            raise AuthorFailed("malformed", f"{problem.where}: {problem.reason}")
        return ModelReply(content, "recorded", 0, 0, 0.0)
