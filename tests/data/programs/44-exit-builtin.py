print("bye")
exit()
