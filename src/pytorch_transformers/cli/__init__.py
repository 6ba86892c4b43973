"""The command line: one file for each verb, with its arguments, its help and an example. Help needs no torch."""
