"""The submission as it lies in the workspace, held against the sample submission alone."""

from dataclasses import dataclass
from typing import Literal

from langgraft.environments.competitions.attempts import SUBMISSIONS, judged
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.results import ExecutionResult
from langgraft.nodes.workbench.kernel_calls import KernelTalk, take_out
from langgraft.nodes.workbench.performing import Performed


@dataclass(frozen=True, slots=True)
class Submitted:
    """What lies where a submission is looked for."""

    content: bytes | None
    """The file as it is; `None` where there is none, or it is too large to be taken out."""
    valid: bool
    reasons: tuple[str, ...]
    """Why it is absent or not valid."""

    @property
    def told(self) -> str:
        """What an agent may know of it: nothing comes from the answers."""
        if self.valid:
            return "Submission: present and valid."
        state = "absent" if self.content is None else "present, but not valid"
        return "\n".join([f"Submission: {state}.", *(f"- {reason}" for reason in self.reasons)])


def look_at_submission(competition: Competition) -> KernelTalk[Submitted]:
    """Take the submission out of a workspace and check it."""
    files, left_out = yield from take_out(*SUBMISSIONS)
    left = ExecutionResult(0, "", "", 0.0, files=files, left_out=left_out)
    made = judged(left, competition)
    return Submitted(made.submission, made.submission_valid is True, made.reasons)


def perform_validation(competition: Competition) -> KernelTalk[Performed]:
    """Do what the tool `validate_submission` says."""
    found = yield from look_at_submission(competition)
    return Performed(found.told, failed=not found.valid, submission=state_of(found))


def state_of(found: Submitted) -> Literal["valid", "invalid", "absent"]:
    """Return a submission's state as an observation has it."""
    if found.valid:
        return "valid"
    return "absent" if found.content is None else "invalid"
