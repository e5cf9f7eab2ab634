"""The hostile battery: programs that try to break out of a sandbox, and whether they did.

    attacks       what is tried, and how each must end
    programs/     what runs inside
    moves         attacks in which the host takes part: names, kernels, links laid in its way
    surroundings  what on the host must stay unharmed
    battery       runs them and judges
    on_docker     the battery on a Docker engine

`langgraft sandbox check` runs it on one's own engine. An attack is contained when it is classified
as what it is, nothing it tried succeeded, the host is unharmed, and the sandbox then runs a plain
program.
"""
