"""A terminal in tmux: types keys, and reads and compares the screen."""

import re
import subprocess
import sys
import time
from pathlib import Path

from harness import processes
from harness.debian import require_program

SCREENS = Path(__file__).resolve().parent / "screens"
UPDATE = "--update" in sys.argv[1:]
PATIENCE = 30


class Terminal:
    """A shell in a terminal of a given size."""

    def __init__(self, home, columns, lines, tally):
        self.tally = tally
        self.command = [require_program("tmux"), "-S", str(home / "tmux"), "-f", "/dev/null"]
        self.columns, self.lines = columns, lines
        env = processes.environment(home, TERM="xterm-256color", PS1="$ ", LC_ALL="C.UTF-8", LANG="C.UTF-8")
        shell = "bash --norc --noprofile -i"
        self.do("new-session", "-d", "-x", str(columns), "-y", str(lines), "-s", "ui", "-c", str(home), shell, env=env)
        self.do("set-option", "-s", "set-clipboard", "on")
        self.do("set-option", "-s", "escape-time", "0")
        self.do("set-option", "-g", "status", "off")
        self.resize(columns, lines)

    def do(self, *words, env=None):
        done = subprocess.run([*self.command, *words], env=env, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"tmux {words[0]}: {done.stderr}")
        return done.stdout

    def resize(self, columns, lines):
        self.do("resize-window", "-t", "ui", "-x", str(columns), "-y", str(lines))

    def keys(self, *keys):
        for key in keys:
            self.do("send-keys", "-t", "ui", key)
            time.sleep(0.05)

    def types(self, text):
        self.do("send-keys", "-t", "ui", "-l", text)

    def screen(self):
        return self.do("capture-pane", "-p", "-t", "ui")

    def until(self, good):
        """Waits until the screen is `good`. Returns the last screen and whether it is good."""
        deadline = time.monotonic() + PATIENCE
        while True:
            screen = self.screen()
            if good(screen):
                return screen, True
            if time.monotonic() > deadline:
                return screen, False
            time.sleep(0.05)

    def shows(self, text, what):
        screen, good = self.until(lambda screen: text in screen)
        self.tally.report(good, what, f"{text!r} is not on the screen:\n{screen}")
        return good

    def check_restored(self, what):
        """Checks that the terminal is back in line mode with echo."""
        self.types("stty -a | tr ' ' '\\n' | grep -cxE 'icanon|echo'; echo over\n")
        screen, good = self.until(lambda screen: "\nover" in screen)
        settings = good and re.search(r"^2$", screen, re.M)
        self.tally.report(settings, f"{what}: the terminal is restored", screen)
        self.types("clear\n")
        self.until(lambda screen: "over" not in screen)

    def end(self):
        subprocess.run([*self.command, "kill-server"], capture_output=True)


def plain(screen):
    """Removes values that differ from run to run: times and ports."""
    screen = "\n".join(line.rstrip() for line in screen.rstrip("\n").split("\n"))
    screen = re.sub(r"\d+(\.\d+)? (ms|s)\b( ago)?", "TIME", screen)
    screen = re.sub(r"\d+ min TIME", "TIME", screen)
    screen = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", screen)
    # Their width changes the padding.
    narrow = lambda line: re.sub(r"  +", "  ", line) if "TIME" in line or "PORT" in line else line
    return "\n".join(map(narrow, screen.split("\n")))


def compare(terminal, name, ready):
    """Compares the screen with its file. `ready` is the text to wait for in update mode."""
    file, tally = SCREENS / f"{name}.txt", terminal.tally
    if UPDATE:
        screen, good = terminal.until(lambda screen: ready in screen)
        time.sleep(0.3)
        file.write_text(plain(terminal.screen()) + "\n")
        return tally.report(good, f"screen {name}", screen)
    expected = file.read_text().rstrip("\n")
    screen, good = terminal.until(lambda screen: plain(screen).rstrip("\n") == expected)
    tally.report(good, f"screen {name}", f"expected:\n{expected}\nseen:\n{plain(screen)}")


def programs(terminal, words):
    """Returns the descendants of the shell whose command line contains these words."""
    shell = int(terminal.do("display-message", "-p", "-t", "ui", "#{pane_pid}"))
    parents, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            line = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # the process has exited
        if all(any(word in part.decode(errors="replace") for part in line) for word in words):
            found.append(int(folder.name))

    def below(pid):
        while pid in parents:
            if pid == shell:
                return True
            pid = parents[pid]
        return False

    return [pid for pid in found if below(pid)]
