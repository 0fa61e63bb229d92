import sys

print("checking")
sys.exit(1)
