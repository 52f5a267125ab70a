"""Which attributes does the model tie to social groups, and what emotions do they carry?"""

from clinometer.probes.stereotypes.options import Options
from clinometer.probes.stereotypes.probe import PROBE, Stereotypes

__all__ = ["PROBE", "Options", "Stereotypes"]
