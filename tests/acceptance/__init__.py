"""Every promise at full size, with its figure: `make acceptance`.

    make acceptance [ACCEPTANCE_OUT=DIR] [REDUCED=1] [ONLY=WORD]

One module measures one group of promises and returns `Figure` rows; `promises.py` lists the
groups, and `figure.py` writes `DIR/figures.md` and `DIR/figures.json`. It runs from a git
checkout with the development dependencies, which is what the target sees to.
"""
