"""Drafts of tools that ask: good ones, and subtly broken ones whose own cases agree with them."""
