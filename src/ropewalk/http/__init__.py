"""The HTTP service: every verb of an app over HTTP, for any language, as one ASGI application.

`Serve(app)` is the application; `ropewalk serve` runs it, and a host application can mount it. Nothing in this package
decides about a job: each route translates a request into a verb of the client and its answer into a response.
"""

from ropewalk.http.identity.identity import Authenticate, Identity, Payloads, Role
from ropewalk.http.request import Request
from ropewalk.http.serve import Serve

__all__ = ["Authenticate", "Identity", "Payloads", "Request", "Role", "Serve"]
