"""Broken: it takes 11 seconds to start."""

import time

from mcp_server import serve, text, tool

time.sleep(11)
serve([tool("ready", "Says that it is ready.", {})], lambda name, arguments, request: text("ready"))
