"""Where a model's server listens: a URL that may stand in a plan, its log and its messages."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from langgraft._core.settings import CONFIDENTIAL


def check_server_url(url: str) -> str:
    """Return a URL that holds nothing to be kept secret.

    Raises:
        ValueError: It may, or is no HTTP URL. What may be a secret is not quoted.
    """
    if any(sign in url for sign in "@?#"):
        msg = (
            "leave user, password and query out of a server's URL, which is kept in plan, log and"
            " messages: a key goes into the provider's environment variable, such as OPENAI_API_KEY"
        )
        raise PydanticCustomError(CONFIDENTIAL, msg)
    if not url.startswith(("http://", "https://")):
        msg = f"{url!r:.80} does not begin with http:// or https://"
        raise ValueError(msg)
    return url


ServerUrl: TypeAlias = Annotated[str, AfterValidator(check_server_url)]
"""A field of a plan."""
