"""Grading answers of mathematics: what is accepted, what is not, and that nothing breaks it."""

import os
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from math_verify import parse, verify

from acceptance.figure import Figure, Setting, share
from langgraft.environments.problems import AnswerGrader, MathProblem, final_answer, read_math
from langgraft.environments.problems.splits import (
    MATH_BUILD,
    MATH_EVALUATION,
    by_level,
    draw,
    is_whole,
    require_apart,
)

SEED = 19
MOST_WRONG = 0.005
"""Share of pairs with different answers that may be accepted."""
MOST_WRONG_OF_A_KIND = 0.02
"""Share of false accepts, and of false rejects, of a kind."""
PIECES = [
    r"\frac",
    r"\sqrt",
    r"\pm",
    r"\cup",
    r"\text{",
    r"\left(",
    r"\right]",
    r"\begin{pmatrix}",
    r"\end{pmatrix}",
    r"\\",
    r"&",
    r"{",
    r"}",
    r"(",
    r"]",
    r"^",
    r"_",
    r",",
    r":",
    r".",
    r"=",
    r"<",
    r"\le",
    r"\infty",
    r"\%",
    r"\$",
    r"1",
    r"23",
    r"0.5",
    r"9^{9^{9^9}}",
    r"99999!",
    r"x",
    r"i",
    r"\pi",
    r"and",
    r"or",
    r"-",
    r"+",
    r"/",
    r"!",
    r"\overline{",
    r"\{",
    r"\}",
    r"cm",
    r"√",
    r"½",
    r"∞",
    r"é",
    r"\u202e",
]


def measure(setting: Setting) -> list[Figure]:
    """Fuzz the grader, grade MATH's own answers and others, and hold it against other graders."""
    setting.say("grading answers that are broken, right, and wrong")
    with AnswerGrader(seconds=2.0) as grader:
        figures = [_fuzzed(grader, setting.size(10_000, 200))]
        if not setting.reduced:  # its pairs are among the tests
            figures += _by_kind(setting.checkout, grader)
        data = Path(os.environ.get("LANGGRAFT_DATA", setting.checkout.parent / "shared" / "data"))
        path = data / "math" / "train.jsonl"
        if not path.is_file():
            return [*figures, Figure("MATH", str(path), "absent", "", passed=None)]
        problems = [each for each in read_math(path) if each.answer]
        figures.append(_own(grader, problems[:: setting.size(1, 25)]))
        figures.append(_different(grader, problems, setting.size(10_000, 400)))
        figures.append(_apart(problems, setting.size(100, 10)))
    return figures


def _fuzzed(grader: AnswerGrader, count: int) -> Figure:
    chance = random.Random(SEED)
    broken, bounded, began = [], 0, time.monotonic()
    for number in range(count):
        answer = "".join(chance.choices(PIECES, k=chance.randint(1, 14)))
        if number % 50 == 0:
            answer = chance.choice(("{", "(", r"\frac{", "9", "\0", r"\sqrt{")) * 3_000
        try:
            bounded += bool(
                grader.compare(answer, chance.choice(("x+1", r"\frac12", "(1,2)"))).failure
            )
        except Exception as error:  # noqa: BLE001  (that is what is measured)
            broken.append(f"{answer[:40]!r}: {type(error).__name__}")
    return Figure(
        "Whatever is answered is graded",
        f"{count:,} fuzzed answers in {time.monotonic() - began:.0f} s; {bounded} ended by a bound or in algebra",
        share(count - len(broken), count, broken),
        "all",
        not broken,
    )


def _own(grader: AnswerGrader, problems: Sequence[MathProblem]) -> Figure:
    wrong = [each.id for each in problems if not grader.grade(each.solution, each.answer).correct]
    return Figure(
        "Every solution of MATH is right",
        "its training solutions against their own answers",
        share(len(problems) - len(wrong), len(problems), wrong),
        "all",
        not wrong,
    )


def _different(grader: AnswerGrader, problems: Sequence[MathProblem], count: int) -> Figure:
    accepted, began = [], time.monotonic()
    for given, right in _pairs(problems, count):
        if (grade := grader.compare(given, right)).correct:
            agrees = _judgment(given, right, str(grade.stage))
            accepted.append(f"{given} = {right} ({agrees})")
    return Figure(
        "Different answers are not accepted",
        f"{count:,} pairs of MATH's answers whose normalized texts differ, half of one subject, half near misses,"
        f" in {time.monotonic() - began:.0f} s; an accepted pair is right if it differs in a zero's sign or in the name of the unknown only; numbers may lie within the tolerance",
        f"{len(accepted)} accepted{': ' if accepted else ''}{'; '.join(accepted)}",
        f"at most {MOST_WRONG:.1%}",
        len(accepted) <= MOST_WRONG * count,
    )


def _judgment(given: str, right: str, stage: str) -> str:
    """Judge an accepted pair by its text alone: no grader is its own witness."""
    if stage == "number" and re.sub(r"-(?=0(?![.\d]))", "", given) == re.sub(
        r"-(?=0(?![.\d]))", "", right
    ):
        return "right: zero has no sign"
    if re.sub(r"^[a-z] ?= ?", "", given) == re.sub(r"^[a-z] ?= ?", "", right):
        return "right: the value of the unknown"
    return "within the tolerance" if stage == "number" else "WRONG, unless algebra says so"


def _pairs(problems: Sequence[MathProblem], count: int) -> Iterator[tuple[str, str]]:
    chance = random.Random(SEED)
    subjects: dict[str, list[str]] = {}
    for each in problems:
        subjects.setdefault(each.subject, []).append(each.answer)
    made = 0
    while made < count:
        right = chance.choice(problems)
        given = (
            chance.choice(subjects[right.subject])
            if made % 2
            else chance.choice((_flipped, _digit, _inverted, _dropped))(right.answer, chance)
        )
        if _normalized(given) and _normalized(given) != _normalized(right.answer):
            made += 1
            yield given, right.answer


def _flipped(answer: str, _: random.Random) -> str:
    return answer[1:] if answer.startswith("-") else f"-{answer}"


def _digit(answer: str, chance: random.Random) -> str:
    places = [found.start() for found in re.finditer(r"\d", answer)]
    if not places:
        return answer
    at = chance.choice(places)
    return f"{answer[:at]}{(int(answer[at]) + chance.randint(1, 9)) % 10}{answer[at + 1 :]}"


def _inverted(answer: str, _: random.Random) -> str:
    return re.sub(r"frac\{([^{}]*)\}\{([^{}]*)\}", r"frac{\2}{\1}", answer)


def _dropped(answer: str, _: random.Random) -> str:
    return re.sub(r",[^,()\[\]{}]*", "", answer, count=1)


def _normalized(answer: str) -> str:
    """Strip what does not count in the notation of MATH: the plain string match that others use."""
    text = re.sub(
        r"\\(?:left|right|[,;:! ])|\\?\$|\s|\\text\{[^{}]*\}$|\^\{?\\circ\}?|\\?%", "", answer
    )
    return re.sub(r"\\[dt]frac", r"\\frac", text).rstrip(".")


def _plain(given: str, right: str) -> bool:
    return _normalized(given) == _normalized(right)


def _math_verify(given: str, right: str) -> bool:
    try:
        return bool(verify(parse(f"${right}$"), parse(f"${given}$")))
    except Exception:  # noqa: BLE001  (what it raises is no acceptance)
        return False


def _by_kind(checkout: Path, grader: AnswerGrader) -> list[Figure]:
    """Count false accepts and false rejects of three graders, by kind."""
    path = checkout / "tests" / "environments" / "problems" / "answer_pairs.yaml"
    kinds: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    graders: dict[str, Callable[[str, str], bool]] = {
        "ours": lambda given, right: grader.compare(given, right).correct,
        "math-verify": _math_verify,
        "string match": _plain,
    }
    figures, totals = [], dict.fromkeys(graders, (0, 0))
    for kind, pairs in kinds.items():
        told, ours = [], (0, 0)
        for name, same in graders.items():
            wrong = _wrong(same, kind, pairs)
            totals[name] = totals[name][0] + wrong[0], totals[name][1] + wrong[1]
            ours = wrong if name == "ours" else ours
            told.append(f"{name} {wrong[0]} + {wrong[1]}")
        sizes = len(pairs["unequal"]), len(pairs["equal"])
        held = all(bad <= MOST_WRONG_OF_A_KIND * of for bad, of in zip(ours, sizes, strict=True))
        how = f"{sizes[0]} unequal pairs, {sizes[1]} equal ones: false accepts + false rejects"
        figures.append(
            Figure(f"Answers of the kind {kind}", how, ", ".join(told), "2 % each (ours)", held)
        )
    all_told = ", ".join(f"{name} {wrong[0]} + {wrong[1]}" for name, wrong in totals.items())
    return [
        *figures,
        Figure("All kinds together", "false accepts + false rejects", all_told, "", None),
    ]


def _wrong(same: Callable[[str, str], bool], kind: str, pairs: Any) -> tuple[int, int]:
    def accepted(given: str, right: str) -> bool:
        return same(final_answer(given) if kind == "several" else given, right)

    return (
        sum(accepted(*each) for each in pairs["unequal"]),
        sum(not accepted(*each) for each in pairs["equal"]),
    )


def _apart(problems: Sequence[MathProblem], count: int) -> Figure:
    for seed in range(count):
        evaluation = draw("math-eval", problems, MATH_EVALUATION, seed=seed, stratum=by_level)
        for other in range(3):
            build = draw(
                "math-build",
                problems,
                {True: MATH_BUILD},
                seed=other,
                stratum=is_whole,
                apart_from=evaluation,
            )
            require_apart({"math-build": build, "math-eval": evaluation})
    how = f"{count} evaluation draws of MATH, three build draws each, by id and statement"
    return Figure(
        "Build draws never meet the evaluation", how, f"{count * 3} of {count * 3}", "all", True
    )
