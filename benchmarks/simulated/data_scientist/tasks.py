"""What a prompt says of a competition: its form, its columns, its metric.

Nothing here knows a competition. Files, columns and folders are read from the preview of the data
(`environments/competitions/preview.py`); where a prompt has none, from what any description has:
names in backquotes and the head of the sample submission. The metric is named in the description.

Which of the prompts that ship a text is, and what was filled in.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from langgraft._core.canonical import text_digest
from langgraft.benchmarks.simulated.conversation import Dice
from langgraft.memory.model import BLOCK_END, BLOCK_START, strip_block
from langgraft.nodes.prompts import prompt

Form: TypeAlias = Literal["table", "text", "pictures", "restoring"]
"""A table with a target; a column of text with a target; pictures with labels; pictures with
pictures that they are to become, as a table of pixels."""

Metric: TypeAlias = Literal[
    "rmsle", "log-loss", "auc", "accuracy", "kappa", "f1", "mae", "rmse", "r2"
]

_METRICS: Final[tuple[tuple[Metric, str], ...]] = (
    ("rmsle", r"logarithmic (?:squared )?error|\brmsle\b|squared log(?:arithmic)? error"),
    ("log-loss", r"logarithmic loss|\blog[\s-]?loss\b|cross[\s-]?entropy"),
    ("kappa", r"\bkappa\b"),
    ("auc", r"area under|\bauc\b|\broc\b"),
    ("f1", r"\bf1\b|\bf-score\b|\bf-measure\b"),
    ("accuracy", r"\baccuracy\b"),
    ("mae", r"mean absolute error|\bmae\b"),
    ("rmse", r"root[\s-]mean[\s-]squared?[\s-]error|\brmse\b|mean squared error|\bmse\b"),
    ("r2", r"\br2\b|\br\^2\b|coefficient of determination"),
)
"""Words that name a metric; the first that is found counts."""

_CLASSES: Final = frozenset({"log-loss", "auc", "accuracy", "kappa", "f1"})
_TEXT_NAMES: Final = frozenset(
    {"text", "comment", "comment_text", "review", "sentence", "body", "tweet", "excerpt"}
)
_TABLE: Final = re.compile(r"^(\S+\.csv): [^\n]*\n((?:[ \t]+[^\n]+\n?)+)", re.MULTILINE)
_COLUMN: Final = re.compile(r"^[ \t]+([^:\n]+): ([^\n]*)", re.MULTILINE)
_FOLDER: Final = re.compile(
    r"^[ \t]+([\w-]+)/ \([^)\n]*\.(png|jpe?g|tiff?|bmp|gif)\b", re.MULTILINE
)
_NAMED_FOLDER: Final = re.compile(r"`([\w-]+)/`")
_FILE: Final = re.compile(r"[\w./-]*?([\w-]+\.csv)\b")
_HEAD: Final = re.compile(r"^[ \t]*([A-Za-z_][^\s,]*(?:,[^\s,]+)+)[ \t]*$", re.MULTILINE)
_SIZE: Final = re.compile(r"\b(\d{1,4})\s*(?:by|x|×)\s*(\d{1,4})\b", re.IGNORECASE)  # noqa: RUF001
_PICTURE: Final = re.compile(r"\.(png|jpe?g|tiff?|bmp|gif)\b", re.IGNORECASE)
_LARGEST: Final = 32
"""Side in pixels that pictures are made smaller to, so that a program stays quick."""


@dataclass(frozen=True, slots=True)
class Task:
    """A competition, as far as its prompt tells."""

    form: Form = "table"
    metric: Metric = "rmse"
    id: str = "id"
    target: str = "target"
    outputs: tuple[str, ...] = ("target",)
    """Columns of a submission after its id."""
    text: str = "text"
    """The column of text, where there is one."""
    train: str = "train.csv"
    test: str = "test.csv"
    sample: str = "sample_submission.csv"
    pictures: str = "train"
    """Folder of the pictures to learn from."""
    clean: str = "train_clean"
    """Folder of what they are to become."""
    new: str = "test"
    """Folder of the pictures to say something of."""
    ending: str = "png"
    side: int = 16
    """Rows and columns that pictures are brought to."""

    @property
    def classes(self) -> bool:
        """Whether one of several classes is predicted, and no number."""
        return self.metric in _CLASSES

    @property
    def probabilities(self) -> bool:
        """Whether a submission has a column for each class."""
        return len(self.outputs) > 1 and self.metric in ("log-loss", "auc")


def read_task(description: str, data: str = "") -> Task:
    """Read a description, and a preview of the data where there is one."""
    tables = {name: _columns(lines) for name, lines in _TABLE.findall(data)}
    both = f"{description}\n{data}"
    files = {kind: _file(both, kind) for kind in ("train", "test", "sample")}
    sample = _submission(description, tables.get(files["sample"], {}))
    train, test = tables.get(files["train"], {}), tables.get(files["test"], {})
    folders = _folders(description, data)
    text = _text_column(test or train, description, sample[0])
    return Task(
        form=_form(description, sample, folders, text),
        metric=_metric(description, sample),
        id=sample[0],
        target=_target(description, train, test, sample),
        outputs=sample[1:],
        text=text or "text",
        train=files["train"] or "train.csv",
        test=files["test"] or "test.csv",
        sample=files["sample"] or "sample_submission.csv",
        pictures=_folder(folders, "train") or "train",
        clean=_folder(folders, "clean") or "train_clean",
        new=_folder(folders, "test") or "test",
        ending=_ending(both, tables.get(files["sample"], {}).get(sample[0], "")),
        side=_side(description),
    )


def _columns(lines: str) -> dict[str, str]:
    """Return the columns of a table that a preview shows, with what it says of each."""
    return {name.strip(): values for name, values in _COLUMN.findall(lines)}


def _submission(description: str, shown: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of a submission: as previewed, or as a description shows their line."""
    if len(shown) > 1:
        return tuple(shown)
    heads = [tuple(each.split(",")) for each in _HEAD.findall(description)]
    return heads[-1] if heads else ("id", "target")


def _metric(description: str, sample: tuple[str, ...]) -> Metric:
    evaluation = re.split(
        r"^#+\s*(?:evaluation|metric)", description, flags=re.IGNORECASE | re.MULTILINE
    )
    for text in (*evaluation[1:], description):
        for metric, words in _METRICS:
            if re.search(words, text, re.IGNORECASE):
                return metric
    return "log-loss" if len(sample) > 2 else "rmse"  # noqa: PLR2004  (id and one column)


def _form(description: str, sample: tuple[str, ...], folders: list[str], text: str) -> Form:
    if folders:
        pixels = re.search(r"\b\d+_\d+_\d+,|<row>|row for each pixel", description)
        restored = pixels is not None and len(sample) == 2  # noqa: PLR2004  (id and one column)
        return "restoring" if restored else "pictures"
    return "text" if text else "table"


def _folders(description: str, data: str) -> list[str]:
    """Return folders of pictures."""
    if found := _FOLDER.findall(data):
        return [name for name, _ in found]
    return _NAMED_FOLDER.findall(description) if _PICTURE.search(description) else []


def _folder(names: list[str], word: str) -> str:
    return next(iter(sorted((name for name in names if word in name.lower()), key=len)), "")


def _text_column(columns: Mapping[str, str], description: str, id_column: str) -> str:
    """Return a column of prose: text of many different values, by a usual name or of many words."""
    for name, values in columns.items():
        prose = re.search(r"\btext\b.*such as \"[^\"]*\s[^\"]*\s[^\"]*\"", values) is not None
        usual = name.lower() in _TEXT_NAMES and "text" in values
        if name != id_column and (usual or prose):
            return name
    if columns:
        return ""
    named = re.findall(r"`(\w+)`", description)
    return next((name for name in named if name.lower() in _TEXT_NAMES), "")


def _target(
    description: str, train: Mapping[str, str], test: Mapping[str, str], sample: tuple[str, ...]
) -> str:
    alone = [name for name in train if name not in test and name != sample[0]]
    if alone:
        named = [name for name in alone if name in sample]
        return (named or alone)[-1]
    said = re.search(r"`(\w+)`[^\n]*what is to be predicted", description)
    listed = re.search(r"`train\w*\.csv`[^\n]*: (`[^\n]*`)", description)
    if said is not None:
        return said.group(1)
    if listed is not None:
        return listed.group(1).split("`")[-2]
    return sample[1] if len(sample) == 2 else "target"  # noqa: PLR2004  (id and one column)


def _file(text: str, kind: str) -> str:
    names = (match.group(1) for match in _FILE.finditer(text))
    return next((name for name in names if name.lower().startswith(kind)), "")


def _ending(text: str, ids: str) -> str:
    """Return the ending of pictures; empty where ids have it already."""
    found = _PICTURE.search(text)
    return found.group(1).lower() if found and not _PICTURE.search(ids) else ""


def _side(text: str) -> int:
    found = _SIZE.search(text)
    side = int(found.group(1)) if found else _LARGEST
    return max(4, min(side, _LARGEST))


_PLACEHOLDER: Final = re.compile(r"\$(\w+)")


@dataclass(frozen=True, slots=True)
class FilledPrompt:
    """A prompt taken apart."""

    kind: str
    """Name of the prompt."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """What stands for each placeholder, such as `task`, `code` and `output`."""
    notes: str = ""
    """What was recalled from memory, without the marks around it."""

    def part(self, name: str) -> str:
        """Return what stands for a placeholder; empty where the prompt has no such one."""
        return self.parts.get(name, "")


def read_prompt(text: str, kinds: Sequence[str]) -> FilledPrompt | None:
    """Take a prompt apart; `None` where it is none of these kinds.

    A prompt is known by its own words: those that stand between its placeholders have to occur in
    their order.
    """
    # The block stands before the instructions; output that quotes a block stands before that.
    bare = strip_block(text)
    notes = text.rpartition(BLOCK_START)[2].partition(BLOCK_END)[0] if text != bare else ""
    for kind in kinds:
        parts = _filled(kind, bare)
        if parts is not None:
            return FilledPrompt(kind, parts, notes)
    return None


def dice_for(seed: int, texts: Sequence[str], *, sampled: bool, sample: str) -> Dice:
    """Return what decides by the seed, a conversation without notes, and the name of the call."""
    # Blank lines are dropped, which notes leave behind: with and without them draws are the same.
    read = " ".join(" ".join(strip_block(text).split()) for text in texts)
    return Dice(seed, sampled, text_digest(read.encode("utf-8", "replace").decode("utf-8")), sample)


@lru_cache(maxsize=32)
def _template(kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words between the placeholders of a prompt, and their names."""
    pieces = _PLACEHOLDER.split(prompt(kind).text)
    return tuple(pieces[::2]), tuple(pieces[1::2])


def _filled(kind: str, text: str) -> dict[str, str] | None:
    words, names = _template(kind)
    at = text.find(words[0])
    if at < 0:
        return None
    at += len(words[0])
    found: dict[str, str] = {}
    for name, following in zip(names, words[1:], strict=True):
        ending = following.rstrip() if following is words[-1] else following
        end = text.find(ending, at) if ending else len(text)
        if end < 0:
            return None
        found[name] = text[at:end]
        at = end + len(ending)
    return found
