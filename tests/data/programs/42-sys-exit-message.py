import sys

print("checking")
sys.exit("nothing to do")
