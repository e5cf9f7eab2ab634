"""What runs inside a sandbox: plain scripts of the standard library, for Python 3.8 and later.

    supervisor           the first process of every place, of which these are parts:
    frames, host_channel its stream to the host
    watching             waiting for all at once
    processes, clearing, sealing
                         starting, ending, and what nothing may do to the supervisor
    starting, running, relay, output, reports
                         what runs, what it prints, and how it ends
    kernel_manager, kernel_child
                         the kernel, from outside
    workspace, putting, collecting, removing
                         files in, files out, folders away
    exceptions, launcher the program's own interpreter, before its first line
    exceptions, kernel   the interpreter that keeps its variables between cells

Nothing here is installed in an image. `scripts` joins the files to one script each, which is
passed with `python3 -c`, so that host and supervisor are always of one version.
"""
