"""The command line: `langgraft plans | preview | run | status | report | verify`."""
