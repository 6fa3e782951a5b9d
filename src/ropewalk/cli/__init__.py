"""The command line: one module or package for each command, which mostly calls a method of the client."""
