"""Checks of a server against its API's contract, which share no code with the runtime that builds
the requests: of what it sends (`request.check_request`) and of its results (`result.check_result`).
"""
