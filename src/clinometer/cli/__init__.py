"""The command line: each command parses its options, calls a workflow and prints."""
