"""Whether a server keeps to its API's contract, judged by code that shares nothing with the code
that builds its requests: what it sends (`check_request`) and what it makes of answers
(`check_answer`).
"""

from sandbox.contract.paged import Served, check_pages, served
from sandbox.contract.places import Place, check_claims, pager, places
from sandbox.contract.request import check_request, documented_schemas
from sandbox.contract.result import Expectation, check_result

__all__ = [
    "Expectation",
    "Place",
    "Served",
    "check_claims",
    "check_pages",
    "check_request",
    "check_result",
    "documented_schemas",
    "pager",
    "places",
    "served",
]
