"""Parts that play the world outside: real servers, real clients, real packages."""
