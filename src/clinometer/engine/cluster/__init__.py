"""Batches on other machines: Ray starts the processes, this folder decides who answers what.

settings.py    what a cluster is asked for
worker.py      the process that has a model: loads it, answers batches
files.py       weights on their way to a machine, once
choosing.py    which batches a free worker is given: pure rules
hands.py       what the driver knows of one worker, and of the batches that it has
driver.py      one thread that gives out batches, takes answers, and replaces workers that die
executor.py    the executor door: a stream of batches in, a stream of answers out
view.py        what a user sees of all that

Nothing here is imported before somebody asks for it, and `ray` only when a cluster is opened.
"""
