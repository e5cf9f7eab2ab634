"""`DockerSandbox` does what every sandbox does."""

from sandbox_cases import SandboxCases


class TestDockerSandbox(SandboxCases):
    """In containers."""
