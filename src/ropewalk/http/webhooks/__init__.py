"""Webhooks: tell other systems when jobs end, by signed requests to addresses that are checked."""
