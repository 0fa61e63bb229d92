import mmap
print("trying")
if not _x86:
    held()
if syscall(0x40000000 | 39, None) >= 0:
    escaped("made an x32 system call")
# mov eax, 20; int 0x80; ret: getpid through the 32-bit interface.
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
pid = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
if pid > 0:
    escaped("made a 32-bit system call")
held()
