# Whatever runs in its place says so on the pipe.
words = "import os; said = b'oescaped: became another program'; os.write(3, len(said).to_bytes(4, 'little') + said)"
command = [sys.executable, "-I", "-S", "-c", words]
attempt("became another program", os.execv, sys.executable, command)
attempt("became another program by descriptor", os.execve, os.open(sys.executable, os.O_RDONLY), command, {})
held()
