"""`python -m langgraft`: the command line."""


def main() -> None:
    """Run the command line."""
    from langgraft.benchmarks.cli.app import run  # noqa: PLC0415  (keeps `import langgraft` light)

    run()


if __name__ == "__main__":
    main()
