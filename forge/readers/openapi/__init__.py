"""Readers of OpenAPI 2.0 (Swagger), 3.0, 3.1 and 3.2 documents."""
