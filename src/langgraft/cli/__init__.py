"""The command line. `…_app` modules hold options and import what does the work when it is done."""
