"""The boards of the competitions that ship: teams are pipelines, and a board is what they score.

contests    what a board needs to know of a competition: its data as read and as views, teams, losses
visits …    one module for each competition: views of its data, its teams, one pipeline held out
catalog     the contests by id, and other splits of their sources, in folders
boards      trains all teams and sorts them; whether gold and median are further apart than chance;
            the board remade on other splits, and the medal of the pipeline held out
attacks     what looking up the source would earn
traces      what places, ids and files tell of answers
pictures    features of small pictures

`make boards` writes `leaderboard.csv`, `board.json` and `checksums.yaml` of competitions anew.
"""
