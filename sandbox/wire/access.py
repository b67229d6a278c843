"""What a tool's declared requests say of its access, whoever wrote it."""

from __future__ import annotations

from sandbox.bundle.model import RequestPattern, ToolDefinition
from sandbox.bundle.permissions import READING, is_permission_request
from sandbox.wire.graphql import classify_document
from sandbox.wire.policy import SAFE_METHODS


def is_mutation(request: RequestPattern) -> bool:
    """Whether a request has a GraphQL document that is no query."""
    return bool(request.document) and classify_document(request.document) != "query"


def is_unsafe(request: RequestPattern) -> bool:
    """Whether a request may change something by its method (RFC 9110 section 9.2.1), or what its
    permission stands for may.
    """
    if is_permission_request(request):
        return request.method not in READING
    return request.method not in SAFE_METHODS


def is_self_evident(tool: ToolDefinition) -> bool:
    """Whether only a person makes another access of a tool's: it writes, or all that it may send is
    safe. Whether any other one reads depends on its author and on what it calls.
    """
    if tool.access == "write":
        return True
    return all(
        request.method in SAFE_METHODS and not is_unsafe(request) for request in tool.requests
    )
