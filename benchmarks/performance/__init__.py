"""Speed, as ratios against a named floor measured in the same process."""
