"""Change the inputs, which can only be read."""

import os
import shutil

from attempts import attempt, call, done

FOLDER = "/workspace/input"
FILE = f"{FOLDER}/train.csv"


def write(how):
    descriptor = os.open(FILE, how)
    os.write(descriptor, b"hostile")


print(open(FILE).read().strip(), flush=True)
attempt("write", lambda: write(os.O_WRONLY))
attempt("append", lambda: write(os.O_WRONLY | os.O_APPEND))
attempt("cut", lambda: os.truncate(FILE, 0))
attempt("delete", lambda: os.unlink(FILE))
attempt("rename", lambda: os.rename(FILE, f"{FOLDER}/other.csv"))
attempt("replace", lambda: os.replace("/workspace/inputs.py", FILE))
attempt("link", lambda: os.link(FILE, "/workspace/linked.csv"))
attempt("add", lambda: os.close(os.open(f"{FOLDER}/new", os.O_CREAT | os.O_WRONLY)))
attempt("open to all", lambda: os.chmod(FILE, 0o777))
attempt("date", lambda: os.utime(FILE, (0, 0)))
attempt("move the folder", lambda: os.rename(FOLDER, "/workspace/moved"))
attempt("delete the folder", lambda: shutil.rmtree(FOLDER))
attempt("mount writable", lambda: call("mount", None, FOLDER.encode(), None, 0x20 | 0x1000, None))
done()
