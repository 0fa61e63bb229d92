import atexit

class Thing:
    def __del__(self):
        print("thing is gone")

atexit.register(print, "exit function")
thing = Thing()
print("end of script")
