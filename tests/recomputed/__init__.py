"""What papers print, recomputed from what else they print; `docs/published-*.md` have what comes of it."""
