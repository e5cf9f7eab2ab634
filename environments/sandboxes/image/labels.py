"""How our images are named and told from others."""

from typing import Final

REPOSITORY: Final = "langgraft-sandbox"
RECIPE_LABEL: Final = "langgraft.sandbox-image.recipe"
"""On images we built: the hash of Dockerfile, requirements and base."""
BASE_LABEL: Final = "langgraft.sandbox-image.base"
"""On base images we made, and so on what is built on them."""
