"""What agents are told, whole and beside what their originals tell: docs/prompts.md."""
