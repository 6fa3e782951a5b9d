"""The command line: a module a command, each a thin shell around the client's own verbs."""
