"""Every promise at full size, with its figure: `make acceptance`.

    python -m langgraft.benchmarks.acceptance --out DIR [--reduced] [--only WORD]

One module measures one group of promises and returns `Figure` rows; `promises.py` lists the
groups, and `page.py` writes `DIR/figures.md` and `DIR/figures.json`. It runs from a git
checkout with the development dependencies, which is what `make acceptance` sees to.
"""
