"""How statements are sent to the server: several in one round trip, on a connection that does not wait for ever."""
