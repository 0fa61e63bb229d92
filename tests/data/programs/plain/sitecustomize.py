"""Python reads this before a script: the script finds the tools as a program does."""

import fixture_tools

fixture_tools.install()
