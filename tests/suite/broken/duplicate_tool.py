"""Broken: two tools have the same name."""

from mcp_server import serve, text, tool

TOOLS = [tool("status", "Returns the status.", {}), tool("status", "Returns the status of a job.", {"job": {"type": "string"}})]

serve(TOOLS, lambda name, arguments, request: text("running"))
