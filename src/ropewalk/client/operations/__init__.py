"""What a client can do, a module a family; client.client puts them together."""
