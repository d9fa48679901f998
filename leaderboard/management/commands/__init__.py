"""One module a command: parse, call one service, print."""
