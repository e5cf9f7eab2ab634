"""The boards of the competitions that ship: teams are pipelines, and a board is what they score.

contests    what a board needs to know of a competition: its data as views, teams, losses
teams       pipelines, and blends of them
visits …    one module for each competition: views of its data, its teams, one pipeline held out
boards      trains all teams and sorts them
separation  whether gold and median are further apart than chance
fresh       the board remade on other splits, and the medal of the pipeline held out
attacks     what looking up the source would earn; looking_up has the neighbors
traces      what places, ids and files tell of answers
catalog     the contests by id
reading     prepared competitions as their competitors read them
pictures    features of small pictures
splits      other splits of a competition's source, in folders
writing     `leaderboard.csv`, `board.json` and `checksums.yaml` of a competition's folder

`python -m langgraft.benchmarks.mle.boards` writes them anew.
"""
