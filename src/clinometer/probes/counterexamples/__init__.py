"""Which gender does the model expect in an occupation, and do counterexamples change its mind?"""

from clinometer.probes.counterexamples.options import Options
from clinometer.probes.counterexamples.probe import PROBE, Counterexamples

__all__ = ["PROBE", "Counterexamples", "Options"]
