"""What a client can do, by family; engine.client puts them together."""
