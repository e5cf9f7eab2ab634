"""What the originals tell their models, point by point, in our words; and where it stands here.

Each point has what the original tells, a passage of ours that tells it (it must be there, to the
letter), and where there is none, why not, or what else is to be known.
"""

from typing import Final, NamedTuple


class Point(NamedTuple):
    """One thing that an original tells."""

    tells: str
    ours: str = ""
    """Passage of our prompts; empty: they do not tell it."""
    note: str = ""
    """Why not, or what differs."""
    agents: tuple[str, ...] = ("tree", "chain", "mlab")
    """Whose prompts tell it, of what every agent of MLE-bench is told."""


AIDE: Final = (
    Point("who it is: an expert of such competitions, who needs a good and creative plan", "You are an experienced data scientist"),
    Point("the task's description", "# Task"),
    Point("plans, results and metrics of the attempts that worked", "# Earlier attempts", "bounded; AIDE's grows without limit"),
    Point("reply with a sketch of three to five sentences, then one code block", "A plan of three to five sentences, then one fenced block with the whole program"),
    Point("draft: simple, no ensembles, no search for hyperparameters", "Leave ensembles and the search for hyperparameters to later"),
    Point("draft: another way to model than the attempts, the evaluation the same", "differs from the earlier attempts in how it models the data, and is judged by the same metric"),
    Point("draft: propose a metric that fits", "print the metric of the competition", "the metric that is graded, so that scores compare"),
    Point("no exploratory analysis", "No exploratory analysis and no plots"),
    Point("the data is prepared, nothing is to be unzipped", "The data is there already"),
    Point("print the metric on held-out data", "Hold out a part of the training data"),
    Point("one file, self-contained, run as it is", "One self-contained Python program"),
    Point("skip no part, do not end early", "with no part left out: it is run as it stands"),
    Point("how long it may run", "One execution: 120 minutes at most"),
    Point("where the data is", "The data lies in `./input`"),
    Point("save predictions for the test data as submission.csv; do not forget it", "Write predictions for the test data to `./submission.csv`", "in the working folder itself"),
    Point("other files may be written, too", "Other files can be written to the working folder"),
    Point("so many folds, where that is suitable", "or cross-validate with 5 folds"),
    Point("packages by name; all others are there as well", "These packages are installed, among others", "those that are in the image; that all others are there would not be true"),
    Point("rather PyTorch than TensorFlow", "", "the list says which of them there is"),
    Point("a preview of the data (drafts and repairs)", "# Data"),
    Point("improve: one specific change, atomic, so that its effect can be measured", "make that change and no other, so that its effect can be measured"),
    Point("debug: a plan of three to five sentences how the fault is fixed", "Find out why it failed, keep its idea"),
    Point("debug: the program, and what it printed", "# What came of it"),
    Point("review: is there a fault (and a fix), what was found, the metric; by a function's fields, all required", "is_bug: true if the program failed", "fields where the provider holds to a schema, else JSON"),
    Point("review: whether lower is better", "", "the competition's board knows it; AIDE ends at an answer that differs from the last"),
    Point("on request: a documented function predict()", "", "off in AIDE, too; nobody calls it"),
)  # fmt: skip

AIRA: Final = (
    Point("weigh task, size and kind of data, and compute", "Weigh what the task asks for, what kind of data there is and how much of it, and what the bounds at the end allow"),
    Point("one idea that differs from those explored, evaluation as before", "Choose one idea that differs from the earlier attempts in a part that decides the result"),
    Point("say why it should work", "say why it should better the metric with this data"),
    Point("three levels of complexity, by the number of drafts or children", "Make it simple: one well-tried model"),
    Point("pretrained models where they help", "start from them for pictures, sound and text", "only where weights are on the machine"),
    Point("no exploratory analysis; output kept clean", "No exploratory analysis and no plots"),
    Point("improve: what the parent printed", "# What came of it, and how long it ran"),
    Point("debug: earlier attempts at the same failure", "# How it came about", "bounded to 6,000 characters"),
    Point("debug: do not change the idea; fix what would fail next, too", "without other faults that would show once this one is gone"),
    Point("advice on single libraries (optimizers, early stopping, model names)", "", "goes stale with versions; what memory learns takes its place"),
    Point("vectorize over large data; how to find cached weights", "", "general advice; a limit that ended a program is told with what to do"),
)  # fmt: skip

MLE_BENCH: Final = (
    Point("train a model and run it on the test data; labeling by hand is not allowed", "never labeled by hand"),
    Point("where description and data are", "./input"),
    Point("the CSV at one path is graded, whatever the description says", "is what is graded, whatever else the task's description asks for"),
    Point("the data was split anew, so that files may differ", "The data was split anew for this competition"),
    Point("a checker tells whether a submission is valid, and no score", "checks the form of `./submission.csv`. It gives no score", "a tool of the chain, and one of MLAB; of a tree's program it is told with the output", ("chain",)),
    Point("do not look at others' solutions", "", "there is no network, and nothing of others in the sandbox"),
    Point("graded by the competition's metric; the best score counts", "print the metric of the competition"),
    Point("these points go before the description where they conflict", "whatever else the task's description asks for"),
    Point("the hardware", "graphics processors: 1", "how many; programs can ask which"),
    Point("hours in all, and that programs count", "about 24 hours left of 24 hours"),
    Point("steps in all", "Steps: 12 of 12 left"),
    Point("what is left of both, at each step", "50 % used"),
    Point("use as much of the time as there is: validate, look at predictions, compare methods", "You are expected to use all the steps and the time that you have", "chain and MLAB; a tree is asked for one program at a time, and goes on by itself", ("chain", "mlab")),
)  # fmt: skip

OPENHANDS: Final = (
    Point("2.1.0: code in tags for Python, bash and browsing", "You work in a sandbox by calling tools", "native calls of tools"),
    Point("2.1.0: pip can install packages", "nothing can be installed"),
    Point("2.1.0: browse the web", "", "no network; `browse` is offered where you pass a function for it"),
    Point("a command that is not finished can be looked at, sent text, interrupted", "goes on as a job with a number", "with `soft_seconds`; else commands are waited for"),
    Point("run what takes long in the background, its output in a file", "look at it, wait for it, send it input or end it", "the same"),
    Point("2.1.0: one action a reply", "Each reply makes exactly one tool call"),
    Point("2.1.0: fewer things at a time, replies concise", "Keep what a call does small enough to see what it did"),
    Point("2.1.0: code of less than 50 lines, lest it is cut off", "", "replies have `max_tokens`; one that is cut off is told so"),
    Point("2.1.0: functions for viewing and editing files, with care for indentation", "View or change a text file of the working folder", "a tool, with its own description"),
    Point("2.1.0: a finish tag ends the work", "`finish` ends the work at once"),
    Point("2.1.0: run code whenever possible", "Each reply makes exactly one tool call"),
    Point("2.1.0: whole paths, pwd", "The working folder is `.`"),
    Point("2.1.0: no apologies, no thanks", "", "a word beside a call costs little"),
    Point("2.1.0: an example of a whole conversation", "", "models that call tools need none, and it costs a thousand tokens a step"),
    Point("MLE-bench: write nowhere else; all code in the workspace", "which is read-only"),
    Point("MLE-bench: use all the time, unless the best possible score is reached", "end the work only when hardly anything is left of them"),
    Point("MLE-bench, to a message: go on with what seems most promising, without a human", "go on with what you think leads to the best result"),
    Point("0.62: thorough and methodical, quality before speed", "You are an experienced machine-learning engineer"),
    Point("0.62: combine actions where possible", "put into one call what belongs together"),
    Point("0.62: explore, weigh approaches, change little, verify", "Look at the data, get a simple solution to run from end to end with a valid submission, and then improve it"),
    Point("0.62: after repeated failures think of five to seven causes, the likeliest first", "think of several possible causes, and look at the likeliest first"),
    Point("0.62: the shell keeps its state", "starts a new shell in the working folder each time", "here it does not: a workspace can be built anew from the log"),
    Point("0.62: long outputs are cut", "Long outputs are shown to you with their middle left out"),
    Point("0.62: a tool to think, one to keep a list of tasks", "Write down a thought", "no list: all steps are in view"),
    Point("0.62: version control, pull requests, credentials, servers, dependencies", "", "there are none in a competition"),
    Point("0.62: answer questions, ask the user, keep code clean", "Nobody answers questions", "nobody reads the code"),
)  # fmt: skip

MLAB: Final = (
    Point("a research assistant with tools: what each is for, its input, what it shows", "Each action uses exactly one of these tools"),
    Point("the research problem", "# Task"),
    Point("it knows nothing of the problem yet", "", "it has the preview of the data"),
    Point("first a plan, which may be revised, kept in Research Plan and Status", "Begin with a plan"),
    Point("keep there what was done, what goes on, and short results", "the whole plan, with what has been done, what came of it and what comes next"),
    Point("only what observations confirmed; numbers only from running code", "Results and numbers come from observations alone"),
    Point("a sound design, a measured baseline before improvements", "Get a simple solution measured and handed in first"),
    Point("follow the plan as straight as possible", "Thought: <what you do now and why>", "a step says how it serves the plan"),
    Point("evidence before conclusions", "Fact Check: <which of the claims above were seen in an observation"),
    Point("install nothing", "nothing can be installed"),
    Point("Final Answer submits, once: be sure before", "`Final Answer` ends the work at once"),
    Point("MLE-bench: no Final Answer as long as anything can be improved", "end the work only when hardly anything is left of them"),
    Point("reply in six fields, each described", "Reply with these six fields, in this order"),
    Point("copy the plan on, with what is new between asterisks", "carry over what still holds from the last one", "MLAB takes the asterisks out again"),
    Point("the form goes on with an observation", "and nothing after them", "models make observations up where the form has one"),
    Point("the last three steps, each with its observation", "You see only your last 3 steps", "MLAB does not say so"),
    Point("an edit: check the diff, undo a bad one", "Look at the diff of each edit, and take back one that is wrong"),
    Point("editing: the whole script, nothing else changed", "Do what the instruction says and leave everything else as it is"),
    Point("reading: only what the file says, with lines, and what it does not say", "Say so if nothing does"),
    Point("shortening: all that matters, nothing guessed", "Keep everything that the next step may need"),
    Point("a reply without the form: all fields are needed", "Send the whole reply again, in this form"),
    Point("hidden tools: read, write and append files, reflection, a research log", "", "MLE-bench's prompt does not show them; `memory` takes the log's place"),
)  # fmt: skip
