"""Reading OpenAPI 2.0 (Swagger), 3.0, 3.1 and 3.2 documents."""

from forge.openapi.reader import Reading, read

__all__ = ["Reading", "read"]
