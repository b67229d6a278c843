"""The whole product through real parts: a client, an engine, an API that none of us wrote."""
