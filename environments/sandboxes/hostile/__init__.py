"""The hostile battery: programs that try to break out of a sandbox, and whether they did.

    attacks       what is tried, and how each must end
    programs/     what runs inside
    surroundings  what on the host must stay unharmed
    battery       runs them on a Docker engine, and judges

`langgraft sandbox check` runs it on one's own engine. An attack is contained when it is classified
as what it is, nothing it tried succeeded, the host is unharmed, and the sandbox then runs a plain
program.
"""
