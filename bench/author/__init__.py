"""Authorship measured: drafts as models write them and broken ones, through the real forge."""
