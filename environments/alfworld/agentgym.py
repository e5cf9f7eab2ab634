"""AgentGym's numbering of games: its item ids, by task id.

AgentGym's 200 held-out items (2420 to 2619) are the games of json_2.1.1 in `valid_train`, and its
2,420 training items are training games of json_2.1.2. Its mapping files say which is which.
"""

from pathlib import Path
from typing import Any

from langgraft._core.errors import GameError, SettingsError
from langgraft.environments.alfworld.reading import Folder, LeftOutError, parse_game


def agentgym_tasks(path: str | Path) -> dict[int, str]:
    """Return item id → task id (`alfworld/<family>/<trial>`) of one of AgentGym's mapping files.

        tasks = agentgym_tasks("mappings_test.json")
        episode = ALFWorld(TreeLibrary("games-2.1.1-put.tar.xz"))(tasks[2420])

    Args:
        path: The file, such as `mappings_test.json`.

    Raises:
        SettingsError: There is no such file.
        GameError: It is not such a mapping.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"no mapping of AgentGym's items at {path} ({error})") from error
    items = parse_game(b'{"items":' + text + b"}", str(path))["items"]
    if not isinstance(items, list):
        raise GameError("is not a list of items", source=str(path))
    return dict(_task(item, f"{path}, item {count}") for count, item in enumerate(items, start=1))


def _task(item: Any, source: str) -> tuple[int, str]:
    match item:
        case {"item_id": int(number), "task_type": str(task), "task_id": str(trial)}:
            folder = Folder("train", task, trial)
        case _:
            raise GameError("is not an item with item_id, task_type and task_id", source=source)
    try:
        folder.check()
    except LeftOutError as reason:
        raise GameError(f"the game {reason}", source=source) from reason
    return number, f"alfworld/{folder.family}/{trial}"
