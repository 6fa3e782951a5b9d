"""Jobs that belong together: gates, scopes, group values, graphs and what follows a completion."""
