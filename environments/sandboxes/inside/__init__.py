"""What runs inside a sandbox: plain scripts of the standard library, for Python 3.8 and later.

    frames, relay, clearing, processes, putting, collecting, removing, supervisor
                         the first process of every place
    exceptions, launcher the program's own interpreter, before its first line
    exceptions, kernel   the interpreter that keeps its variables between cells

Nothing here is installed in an image. `scripts` joins the files to one script each, which is
passed with `python3 -c`, so that host and supervisor are always of one version.
"""
