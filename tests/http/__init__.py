"""The HTTP service, over real sockets."""
