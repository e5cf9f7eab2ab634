"""Speed, each figure beside a floor and peers measured in the same run; `langgraft bench` writes the page."""
