"""What the battery runs: programs that try to get out, or to take more than they are given.

Each is run inside a sandbox only; never import or run one elsewhere. A file is run as it is, but of
`overload`, which holds the short ones, one function a run. Those that try many things use `attempts`,
which is put beside them. What they write to outside of the workspace is harmless where it succeeds:
values that were there before, or nothing.
"""
