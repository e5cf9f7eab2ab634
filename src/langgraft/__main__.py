"""`python -m langgraft`: the command line."""


def main() -> None:
    """Run the command line."""
    from langgraft.cli.app import run_command_line  # noqa: PLC0415  (light)

    run_command_line()


if __name__ == "__main__":
    main()
