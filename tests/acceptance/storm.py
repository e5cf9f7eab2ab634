"""A plan through ChatOpenAI while one call in five goes wrong: nothing is lost, and every call is accounted for."""

import json
from collections.abc import Iterator
from typing import Final

import storms

from acceptance.figure import Figure, Setting, share

ENOUGH: Final = 30
"""Times that each fault is met at full size."""
RUNS: Final = 9
"""Runs of a repetition of the plan."""


CAPS: Final = {"calls": (2000, 60), "tokens": (2_000_000, 90_000), "cost": (2.0, 0.15)}
"""At full and at reduced size."""


def measure_caps(setting: Setting) -> list[Figure]:
    """Stop a plan of many calls at once at each cap; the server's log says what it really took."""
    runs = setting.size(12, 2)
    plan = storms.write_plan(setting.work / "plan.yaml", runs=runs, items=runs, max_tokens=256)
    script = setting.work / "faults.json"
    script.write_text(json.dumps({"faults": storms.LATE}))
    figures = []
    for what, (full, small) in CAPS.items():
        cap = small if setting.reduced else full
        how = ("--concurrency", "64", "--processes", "2", f"--max-{what}", str(cap))
        setting.say(" ".join(how))
        stopped = storms.weathered(setting.work / what, plan, script, *how)
        spent, at_once = stopped.spent[what], stopped.most_at_once
        least, enough = 0.6 if setting.reduced else 0.9, setting.size(48, 8)
        figures.append(
            Figure(
                f"No cap is exceeded, and none is left unused (--max-{what})",
                f"`langgraft run {' '.join(how)}` against `langgraft serve-simulated`; {at_once} calls under"
                f" way at once, {stopped.faults.total():,} of {len(stopped.asked):,} with faults; exit code"
                f" {stopped.code}; by the server's log",
                f"{spent:,.6g} of {cap:,}",
                f"at most the cap, {least:.0%} of it at least, {enough} calls at once",
                least * cap <= spent <= cap and at_once >= enough and stopped.code == 1,
            )
        )
    return figures


def measure(setting: Setting) -> list[Figure]:
    """Run the plan in calm, in a storm that changes no answer, and in one that does."""
    return list(_measured(setting))


def _measured(setting: Setting) -> Iterator[Figure]:
    repetitions, items = setting.size(4, 1), setting.size(6, 2)
    plan = storms.write_plan(setting.work / "plan.yaml", runs=repetitions, items=items)
    setting.say("the plan in calm")
    calm = storms.weathered(setting.work / "calm", plan, None)
    for name, faults in {
        "no answers": (*storms.BROKEN, *storms.ODD),
        "other answers": (*storms.BROKEN, *storms.OTHER),
    }.items():
        setting.say(f"the plan in a storm of {name}")
        script = storms.write_script(setting.work / f"{name}.json", faults)
        storm = storms.weathered(setting.work / name, plan, script)
        met = storm.faults
        how = (
            f"{RUNS * repetitions} runs of {items} items, `langgraft serve-simulated` and `langgraft run`"
            f" as processes; {len(storm.asked):,} calls, {met.total():,} of {len(met)} faults"
        )
        fewest = min(met[storms.label(fault)] for fault in faults)
        yield Figure(
            f"Each fault is met often enough ({name})",
            ", ".join(f"{label} {count}" for label, count in sorted(met.items())),
            f"{fewest} of the rarest, {met.total() / len(storm.asked):.1%} of calls",
            f"{setting.size(ENOUGH, 2)} of each, 20 % of calls",
            fewest >= setting.size(ENOUGH, 2) and 0.19 < met.total() / len(storm.asked) < 0.21,
        )
        lost = len(calm.items.keys() - storm.items.keys())
        done = sum(log.count(b"\n") for log in storm.items.values())
        planned = sum(log.count(b"\n") for log in calm.items.values())
        yield Figure(
            f"No run and no item is lost ({name})",
            how,
            f"{lost} runs lost; {share(done, planned)} items; exit code {storm.code}",
            "none, all, 0",
            not lost and done == planned and not storm.code and not calm.code,
        )
        if name == "no answers":
            same = sum(storm.items.get(run) == log for run, log in calm.items.items())
            yield Figure(
                "Items are the same bytes as without faults",
                how,
                f"{share(same, len(calm.items))} logs",
                "all",
                same == len(calm.items),
            )
        wrong = storm.disagreements()
        yield Figure(
            f"Server and run directory tell the same of every call ({name})",
            "ids of calls, once each on either side; whether it failed; its tokens",
            share(len(storm.asked) - len(wrong), len(storm.asked), wrong),
            "all",
            not wrong,
        )
        said = sum((c["prompt_tokens"] or 0) + (c["completion_tokens"] or 0) for c in storm.asked)
        paid = sum(prompt + made for _, prompt, made in storm.sent.values())
        yield Figure(
            f"What was spent is what the server told ({name})",
            "tokens, sent and replied",
            f"{paid:,} here, {said:,} there",
            "equal",
            said == paid > 0,
        )
        hung = storms.CALL_SECONDS * (met["stall"] + met["drip"])
        most = 2 * calm.seconds + hung + storm.waited
        yield Figure(
            f"A storm costs no more time than its faults take one after another ({name})",
            f"wall time; calm {calm.seconds:.0f} s, deadlines {hung:.0f} s, waits {storm.waited:.0f} s",
            f"{storm.seconds:.0f} s",
            f"{most:.0f} s: twice the calm, and all deadlines and waits",
            storm.seconds <= most,
        )
