"""Contract suites: what a part that somebody else wrote must do to be used here.

conformance   both suites whole, each in one class
stores/       the parts of that of a LangGraph `BaseStore`
providers/    the parts of that of a `MemoryProvider`

Their public face is `langgraft.testing`. They need pytest and hypothesis (`pip install 'langgraft[testing]'`); nothing outside this folder
imports them.
"""

from langgraft._core.lazy import require

_pytest = require("pytest", extra="testing", purpose="langgraft.testing")
require("hypothesis", extra="testing", purpose="langgraft.testing")
# Before the suites are imported: their assertions then say what they compared.
_pytest.register_assert_rewrite(
    "langgraft.memory.testing.stores", "langgraft.memory.testing.providers"
)
