"""Reading OpenAPI 2.0 (Swagger), 3.0 and 3.1 documents; 3.2 is read as 3.1."""

from forge.openapi.reader import Reading, read

__all__ = ["Reading", "read"]
