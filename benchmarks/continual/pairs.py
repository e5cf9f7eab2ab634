"""Two task families in sequence: the unit of a continual study."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

DEFAULT_A, DEFAULT_B = "babyai/action_obj_door", "babyai/find_obj"
"""The families of the study on BabyAI."""


class Tasks(BaseModel):
    """The two task families of the sequence."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    A: str = DEFAULT_A
    B: str = DEFAULT_B

    @model_validator(mode="after")
    def _two(self) -> Self:
        if self.A == self.B:
            msg = f"tasks A and B are both {self.A!r}"
            raise ValueError(msg)
        return self


class TaskPair(Tasks):
    """Two task families, and how their world is played."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)
    """Short name: the beginning of its runs' names, and the folder of its report."""
    A: str
    B: str
    semantics: str | None = None
    """One of the ways its world can be played; `None` takes the world's default."""
    learner: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of the world's simulated learner, such as `mimicry` of ALFWorld's."""

    @property
    def tasks(self) -> Tasks:
        """The two families alone."""
        return Tasks(A=self.A, B=self.B)
