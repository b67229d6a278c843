"""Documentation that only people can read, as the OpenAPI document that it amounts to.

A model says what the text documents; what it cannot quote from the text is left out.
"""
