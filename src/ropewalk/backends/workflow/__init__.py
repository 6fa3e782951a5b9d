"""The rules of workflows that all stores share. Each store calls them inside its own transaction, which it offers as a
unit of work."""
