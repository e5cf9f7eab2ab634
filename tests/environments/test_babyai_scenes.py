"""What is seen, worded and offered, on scenes laid out by hand."""

from langgraft.environments.babyai.scene import Cell, Scene, Thing, describe, options_in

UP = 3


def thing(kind: str, ahead: int, right: int, *, color: str = "red", door: str = "") -> Thing:
    """Place a thing in front of an agent that stands on (5, 9) and looks up."""
    return Thing(kind, color, door, (5 + right, 9 - ahead), ahead, right, 1)


def scene(*things: Thing, load: tuple[str, str] | None = None) -> Scene:
    """Lay out a scene in which the whole view is seen."""
    seen: set[Cell] = {(x, y) for x in range(2, 9) for y in range(3, 10)}
    return Scene((5, 9), UP, things, frozenset(seen), load)


def test_description_when_nothing_but_walls_is_seen_then_the_list_is_empty_but_announced() -> None:
    """A wall alone opens the list of objects without an entry in it."""
    assert describe(scene(thing("wall", 3, 2, color="grey"))) == (
        "In front of you in this room, you can see several objects: "
        "The room has walls around you. You are not carrying anything."
    )


def test_description_when_a_ball_hides_nothing_then_no_facing_sentence_is_given() -> None:
    """Only walls and boxes straight ahead are said to be faced, with `1 steps` for one."""
    text = describe(scene(thing("ball", 1, 0), load=("key", "blue")))
    assert text == (
        "In front of you in this room, you can see several objects: "
        "There is a red ball 1 right in front of you 1 steps away.  "
        "The room has walls around you. You are carrying a blue key."
    )


def test_description_when_two_barriers_stand_ahead_then_the_nearest_is_faced() -> None:
    """The facing sentence names the nearest wall or box of the agent's own column."""
    text = describe(scene(thing("box", 2, 0), thing("wall", 4, 0), thing("wall", 1, 1)))
    assert "You are facing a box 2 steps away. " in text


def test_compat_when_lava_is_seen_then_it_blocks_the_way_and_can_be_picked_up_by_name() -> None:
    """Lava is one more thing to AgentGym: offered to be picked up, and never walked on."""
    plans = options_in(scene(thing("lava", 1, 0)), fixed=False).plans
    assert plans["pickup red lava 1"] == (3,)
    assert plans["move forward"] == (2,)
    beyond = options_in(scene(thing("lava", 1, 0), thing("key", 2, 0)), fixed=False).plans
    assert beyond["go to red key 1"] != (2,)


def test_fixed_when_lava_is_ahead_then_no_step_forward_is_offered() -> None:
    """The mended list keeps the agent from stepping into harm."""
    options = options_in(scene(thing("lava", 1, 0)), fixed=True)
    assert "move forward" not in options.plans
    assert "barrier" in options.refusals["move forward"]


def test_goal_when_in_reach_then_it_is_walked_onto_and_never_gone_to_by_name() -> None:
    """A goal tile has an option of its own and is neither a thing to pick up nor to go to."""
    for fixed in (False, True):
        plans = options_in(scene(thing("goal", 2, 0, color="green")), fixed=fixed).plans
        assert plans["go to goal"] == (2, 2)
        assert not any("green goal" in action for action in plans)


def test_goal_when_out_of_reach_then_the_refusal_says_so() -> None:
    """A walled-in goal is refused with the sentence of its own."""
    around = [thing("wall", 5, side) for side in (-1, 0, 1)]
    sides = [thing("wall", 6, -1), thing("wall", 6, 1), thing("wall", 7, 0)]
    walled = scene(thing("goal", 6, 0, color="green"), *around, *sides)
    options = options_in(walled, fixed=False)
    assert "go to goal" not in options.plans
    assert options.refusals["go to goal"] == (
        "You cannot go to the goal, as there is no path leading to it."
    )


def test_drop_when_a_door_is_ahead_then_compat_offers_it_and_fixed_does_not() -> None:
    """AgentGym overlooks a door in the way of what is to be dropped."""
    before_door = scene(thing("door", 1, 0, door="closed"), load=("ball", "blue"))
    assert "drop" in options_in(before_door, fixed=False).plans
    assert "already an object" in options_in(before_door, fixed=True).refusals["drop"]


def test_ids_when_the_nearer_of_two_is_out_of_reach_then_only_compat_renumbers() -> None:
    """AgentGym's list counts reachable things; the mended one keeps the description's ids."""
    near = Thing("ball", "red", "", (5, 3), 6, 0, 1)
    fence = [thing("wall", 6, -1), thing("wall", 6, 1), thing("wall", 5, 0), thing("wall", 7, 0)]
    far = Thing("ball", "red", "", (2, 4), 5, -3, 2)
    laid_out = scene(near, *fence, far)
    compat, fixed = options_in(laid_out, fixed=False), options_in(laid_out, fixed=True)
    assert "go to red ball 1" in compat.plans
    assert "go to red ball 2" not in compat.plans
    assert "go to red ball 2" in fixed.plans
    assert "no path" in fixed.refusals["go to red ball 1"]


def test_refusal_when_a_closed_door_is_out_of_reach_then_compat_prints_its_counts() -> None:
    """The sentence shows a dict where the id belongs, and the mended one shows the id."""
    door = thing("door", 6, 0, door="closed")
    fence = [thing("wall", 6, -1), thing("wall", 6, 1), thing("wall", 5, 0), thing("wall", 7, 0)]
    action = "toggle and go through red closed door 1"
    laid_out = scene(door, *fence)
    assert "door {'red closed door': 1}, as" in options_in(laid_out, fixed=False).refusals[action]
    assert "closed door 1, as" in options_in(laid_out, fixed=True).refusals[action]
