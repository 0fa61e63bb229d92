print("trying")
os.write(3, bytes(range(256)) * 64)
import time
time.sleep(60)
