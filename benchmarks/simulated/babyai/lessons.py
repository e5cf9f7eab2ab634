"""The wording of lessons: a few ways to say each thing."""

from collections.abc import Mapping
from enum import StrEnum

from langgraft.benchmarks.simulated.babyai.observations import Kind


class Topic(StrEnum):
    """What a lesson can be about."""

    SPELL_JOINED = "spell joined"
    SPELL_VAGUE = "spell vague"
    OPEN_BY_TOGGLE = "open by toggle"
    OPEN_BY_TOGGLE_ONLY = "open by toggle only"
    FACING_IS_NOT_OPENING = "facing is not opening"
    OPEN_WRONG = "open wrong"
    STOP_AT_DOOR = "stop at door"
    DOOR_VAGUE = "door vague"
    GO_TO_OBJECT = "go to object"
    FOUND_HERE = "found here"
    FOUND_ELSEWHERE = "found elsewhere"
    NOT_HERE = "not here"
    SEARCH_ON = "search on"
    LOOK_CLOSER = "look closer"
    SEARCH_VAGUE = "search vague"
    COMMONPLACE = "commonplace"

    @property
    def of_search(self) -> bool:
        """Whether it is about finding the thing rather than about dealing with it."""
        return self in _OF_SEARCH


_OF_SEARCH = {
    Topic.FOUND_HERE,
    Topic.FOUND_ELSEWHERE,
    Topic.NOT_HERE,
    Topic.SEARCH_ON,
    Topic.LOOK_CLOSER,
    Topic.SEARCH_VAGUE,
}

SITUATIONS: Mapping[tuple[Kind, bool], tuple[str, ...]] = {
    (Kind.TAKE, False): (
        "the goal is to pick up an object such as a {type}",
        "you have to pick up a {type} or a similar object",
        "asked to pick up something, for example a {type}",
    ),
    (Kind.TAKE, True): (
        "the goal is to pick up a {type} and it is not in view",
        "you have to pick up an object like a {type} that you cannot see yet",
    ),
    (Kind.OPEN, False): (
        "the goal is to open a door",
        "you have to open a door of a given color",
    ),
    (Kind.OPEN, True): (
        "the goal is to open a door and it is not in view",
        "you have to open a door that you cannot see yet",
    ),
    (Kind.REACH_DOOR, False): (
        "the goal is to go to a door",
        "you only have to go to a door of a given color",
    ),
    (Kind.REACH_DOOR, True): (
        "the goal is to go to a door and it is not in view",
        "you have to go to a door that you cannot see yet",
    ),
    (Kind.REACH_OBJECT, False): (
        "the goal is to go to an object such as a {type}",
        "you have to go to a {type}",
    ),
    (Kind.REACH_OBJECT, True): (
        "the goal is to go to a {type} and it is not in view",
        "you have to go to an object like a {type} that you cannot see yet",
    ),
}
"""Kind of goal, and whether the lesson is about searching → clauses that can follow `when`."""

LESSONS: Mapping[Topic, tuple[str, ...]] = {
    Topic.SPELL_JOINED: (
        "Write 'pickup <object> <number>' as one word, exactly as listed. With a space it fails.",
        "Use 'pickup' with name and number of the {type}; 'pick up' in two words is rejected.",
        "The action that works is spelled 'pickup', in a single word, with the number at the end.",
    ),
    Topic.SPELL_VAGUE: (
        "Go to the {type} first and make sure that you face it before you try to take it.",
        "The action may be rejected several times. Check the name and the number of the {type}.",
        "Move closer and try again when an action is not recognized.",
    ),
    Topic.OPEN_BY_TOGGLE: (
        "Go to the door first, then use 'toggle'. The goal is reached at the moment it opens.",
        "Walk up to it with 'go to', then 'toggle' it and do nothing more.",
        "Use 'go to' with the name of the door and then the plain action 'toggle'.",
    ),
    Topic.OPEN_BY_TOGGLE_ONLY: (
        "'toggle and go through' does not complete it. Go to the door and use plain 'toggle'.",
        "Use 'go to' and then 'toggle' instead of 'toggle and go through'.",
    ),
    Topic.FACING_IS_NOT_OPENING: (
        "Standing before it is not enough. Use 'toggle' once you face the door.",
        "After walking up to the door, use the action 'toggle'.",
    ),
    Topic.OPEN_WRONG: (
        "Use 'toggle and go through' early, and make sure that you really get to the other side.",
        "Go through the door and come back if the goal does not end at once.",
    ),
    Topic.STOP_AT_DOOR: (
        "Use 'go to' with the name of the door and stop in front of it. Do not go through it.",
        "The action 'go to' is all that is needed; there is no need to open anything.",
        "Go to the door and stop there. 'toggle and go through' does not count.",
    ),
    Topic.DOOR_VAGUE: (
        "Be careful which door you choose, as several may look alike.",
        "Doors take more attempts than expected. Plan the moves in advance.",
    ),
    Topic.GO_TO_OBJECT: (
        "Use 'go to' with the name and number of the {type}; the goal ends when you face it.",
        "Go to the {type} directly with the action from the list.",
    ),
    Topic.FOUND_HERE: (
        "Turn around in place until the {type} comes into view; it is in the same room.",
        "Look around by turning left a few times. The {type} is in this room.",
    ),
    Topic.FOUND_ELSEWHERE: (
        "Leave the room and go through closed doors into other rooms until the {type} is in sight.",
        "It is in another room: use 'toggle and go through' on doors not used yet, room by room.",
        "Explore the rooms not seen yet by going through their doors; do not stay where you are.",
    ),
    Topic.NOT_HERE: (
        "Turning around does not help. Go through closed doors into rooms not seen yet.",
        "Leave this room early and explore other rooms through their doors.",
    ),
    Topic.SEARCH_ON: (
        "Open doors one after another and visit each room only once; explore unseen rooms first.",
        "Keep going through closed doors into new rooms, and do not go back to old ones.",
    ),
    Topic.LOOK_CLOSER: (
        "Turn around in place and look around more carefully before anything else.",
        "Stay calm and turn left step by step, so that nothing in the room is missed.",
    ),
    Topic.SEARCH_VAGUE: (
        "Searching can take many moves. Be efficient.",
        "Remember what was seen, and do not waste moves.",
    ),
    Topic.COMMONPLACE: (
        "Read the list of available actions with care and choose one of them.",
        "Think about the goal again and do not repeat an action that failed.",
        "Work step by step and watch how the description changes.",
    ),
}
