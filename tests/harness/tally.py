"""Counts checks. Prints a line for each, and `N passed, M failed` at the end."""

import sys


class Tally:
    """Check counts. With `quiet`, only failures are printed."""

    def __init__(self, quiet=False):
        self.quiet, self.passed, self.failed = quiet, 0, 0

    def report(self, good, what, reason=""):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        if not good:
            print(f"FAIL {what}: {reason}", flush=True)
        elif not self.quiet:
            print(f"ok {what}", flush=True)

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed or not self.passed else 0)
