"""A rule-based learner for BabyAI in words. It is no language model, and no result of it is one.

What it can do, and what it does not know, was written down before any study was run with it
(`docs/simulated-models.md`) and is fixed. It reads messages only.

Competence. It reads the goal (go to an object, go to a door, open a door, pick up an object),
the things in sight, the list of available actions, and its own earlier turns. It writes legal
actions for what is in sight. Searching through doors it prefers closed ones, looks around
where it finds none, and goes back the way least used; it draws no map.

Declared ignorance. For each question one option is drawn for an episode, by a hash of the
seed and of the first human message. At temperature 0 the most likely option is taken.

=================  ==================================================================
Taking things      `pick up`, as instructed, and other words for it 0.5 · after one
                   refusal, as the list of available actions spells it 0.5
Opening a door     `toggle and go through` 0.6 · `go to`, then `toggle` 0.3 · `go to` 0.1
Going to a door    `toggle and go through` 0.5 · `go to` 0.5
Out of sight       turn around in the room 0.4 · look around once, then through doors
                   into unseen rooms 0.35 · wander 0.25
=================  ==================================================================

Memory. The notes in front of the first observation take the place of these draws:

* A line of advice counts if the situation it names fits the kind of the present goal; one
  that names no kind of goal counts for searching only, if it speaks of objects, of doors, or of
  what is out of sight. Polarity is read (`stances`); what cannot be read is silent.
* A successful attempt is imitated in how it takes things, treats doors and searches, also
  where it was for another kind of goal. Of a failed attempt at the same kind of goal, what
  failed first is avoided; other failed attempts say nothing.
* Where notes disagree, the first one wins. Text that advises nothing changes nothing, save
  that a different prompt gets a different draw.

What it has decided it states in its thoughts and keeps to, unless notes advise otherwise, so
that notes exchanged in the middle of an episode bring no fresh draw of what they are silent on.

Reflection. From a success it notes the form of action that worked and where the thing was.
After a failure it finds the right alternative with probability 0.6 (spelling) or 0.5 (doors,
search), and otherwise concludes something wrong or vague. It adds a commonplace with
probability 0.3. Shown a success beside a failure at the same kind of goal, it notes what only the
success did with probability 0.8, and else reflects on the first of the two as ever.

Validation. It notices that a lesson advises nothing with probability 0.7, and that the attempt
speaks against one with probability 0.6; of all others it thinks too little with probability 0.1.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.simulated.babyai.model import SimulatedBabyAI

__all__ = ["SimulatedBabyAI"]

__getattr__, __dir__ = lazy_exports(
    __name__, {"SimulatedBabyAI": "langgraft.benchmarks.simulated.babyai.model"}
)
