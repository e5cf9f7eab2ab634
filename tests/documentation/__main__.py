"""Draw the figures of the documentation: `make figures`; after `make demo`, the picture of its report too."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from chromium import FLAGS, NAMES
from PIL import Image

from documentation.figures import FIGURES

for name, draw in FIGURES.items():
    Path(f"docs/assets/{name}.svg").write_text(draw(), "utf-8")
report = Path(sys.argv[1], "report", "index.html")
browser = next(filter(None, map(shutil.which, NAMES)), None)
if browser is None or not report.is_file():
    sys.stdout.write(f"docs/report.png stays: it takes Chromium, and {report} of `make demo`\n")
else:
    with tempfile.TemporaryDirectory() as profile:
        picture = (
            "--window-size=1000,1640",
            f"--screenshot={profile}/report.png",
            report.absolute().as_uri(),
        )
        command = [browser, *FLAGS, f"--user-data-dir={profile}", *picture]
        subprocess.run(command, check=True, capture_output=True)
        with Image.open(
            f"{profile}/report.png"
        ) as taken:  # as few colors as it needs: a third of the bytes
            taken.convert("RGB").quantize(128).save("docs/report.png", optimize=True)
