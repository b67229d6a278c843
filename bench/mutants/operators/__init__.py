"""The ways to break a server, by what they break."""

from bench.mutants.mutant import Operator
from bench.mutants.operators import (
    answers,
    bodies,
    conditions,
    definitions,
    requests,
    traffic,
    values,
)

OPERATORS: tuple[Operator, ...] = (
    *requests.OPERATORS,
    *bodies.OPERATORS,
    *values.OPERATORS,
    *conditions.OPERATORS,
    *answers.OPERATORS,
    *traffic.OPERATORS,
    *definitions.OPERATORS,
)
