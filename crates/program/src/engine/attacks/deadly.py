# One call per process, because the first one kills it. ONE is the name of the call.
buffer = ctypes.create_string_buffer(4096)
calls = {
    "ptrace": (101, 117, 0, 0, 0, 0),
    "process_vm_writev": (311, 271, os.getppid(), buffer, 1, buffer, 1, 0),
    "mount": (165, 40, b"tmpfs", b"/python", b"tmpfs", 0, 0),
    "umount2": (166, 39, b"/python", 2),
    "pivot_root": (155, 41, b"/", b"/"),
    "chroot": (161, 51, b"/python"),
    "unshare user": (272, 97, 0x10000000),
    "unshare net": (272, 97, 0x40000000),
    "setns": (308, 268, 3, 0),
    "bpf": (321, 280, 0, buffer, 64),
    "keyctl": (250, 219, 0, -3, 1),
    "add_key": (248, 217, b"user", b"x", b"y", 1, -3),
    "io_uring_setup": (425, 425, 4, buffer),
    "userfaultfd": (323, 282, 1),
    "name_to_handle_at": (303, 264, -100, b"/", buffer, buffer, 0),
    "open_by_handle_at": (304, 265, -100, buffer, 0),
    "kexec_load": (246, 104, 0, 0, 0, 0),
    "finit_module": (313, 273, 3, b"", 0),
    "perf_event_open": (298, 241, buffer, 0, -1, -1, 0),
    "pidfd_getfd": (438, 438, 3, 0, 0),
    "open_tree": (428, 428, -100, b"/", 1),
    "fsopen": (430, 430, b"tmpfs", 0),
    "seccomp": (317, 277, 1, 0, buffer),
}
print("trying")
if syscall(*calls[ONE]) >= 0:
    escaped(ONE)
held()
