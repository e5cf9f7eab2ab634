"""Leave files that are none, for whoever takes the results out."""

import os
import socket

with open("ok.csv", "w") as stream:
    stream.write("id,label\n1,0\n")
os.symlink("/etc/passwd", "out.csv")
os.symlink(os.environ["HOSTILE_CANARY"], "canary.csv")
os.symlink("/proc/1/environ", "process.csv")
os.symlink("/etc", "folder")
os.symlink("..", "up")
os.symlink("loop", "loop")
os.symlink("ok.csv", "alias.csv")
os.mkdir("inner")
os.symlink("/", "inner/root")
os.mkfifo("pipe.csv")
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind("socket.csv")
for source in ("/etc/passwd", "/bin/sh"):
    try:
        os.link(source, "hard.csv")
    except OSError:
        pass
with open("sparse.csv", "wb") as stream:
    for size in (1 << 40, 20 << 20):
        try:
            stream.truncate(size)
            break
        except OSError as error:
            print(f"{size} bytes: {error.strerror}")
with open("locked.csv", "w") as stream:
    stream.write("x")
os.chmod("locked.csv", 0)
for name in (
    b"line\nfeed.csv",
    b"\x1b[2J.csv",
    b"not-\xff-text.csv",
    b"..\\..\\windows.csv",
    b"-rf.csv",
    b"~.csv",
    b"C:drive.csv",
):
    with open(name, "w") as stream:
        stream.write("odd name\n")
for _ in range(60):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
with open("deep.csv", "w") as stream:
    stream.write("deep\n")
