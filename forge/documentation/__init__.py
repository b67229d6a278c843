"""Conversion of documentation for people to an OpenAPI document.

A model extracts what the text documents; anything that it cannot quote from the text is dropped.
"""
