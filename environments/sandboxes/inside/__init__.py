"""What runs inside a sandbox: plain scripts of the standard library, for Python 3.8 and later.

    supervisor           the first process of every place, of which these are parts:
    frames               its streams to the host and to the kernel
    watching             waiting for all at once; what a run prints, and how long it may
    processes, sealing   starting, ending, and what nothing may do to the supervisor
    running              programs, and the kernel from outside: what runs, and how it ends
    files                files in, files out, folders away
    exceptions, launcher the program's own interpreter, before its first line
    exceptions, kernel   the interpreter that keeps its variables between cells

Nothing here is installed in an image. `sandboxes/places.py` joins the files to one script each,
which is passed with `python3 -c`, so that host and supervisor are always of one version.
"""
