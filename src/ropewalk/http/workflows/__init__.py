"""Groups, chains and workflows over HTTP."""
