"""What tests of sandboxes share."""

import pytest

# Cases that several sandboxes must pass; their assertions are to say what was wrong.
pytest.register_assert_rewrite("sandbox_cases")
