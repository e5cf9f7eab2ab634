"""Where code that a model wrote runs: limits, results, and the places that hold it.

    limits     what a program may use
    programs   what runs: Python source or a command
    results    what came of it
    sandbox    the `Sandbox` and `Kernel` protocols
    docker/    `DockerSandbox`: a fresh hardened container for each program
    subprocess `SubprocessSandbox`: isolates nothing; only by its name

Scores never come from in here: whatever a program prints or writes is its own word, and is
graded outside.
"""
