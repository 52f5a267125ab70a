"""Do models speak worse of people with stigmatized conditions?"""

from clinometer.probes.stigma.options import Options
from clinometer.probes.stigma.probe import PROBE, Stigma

__all__ = ["PROBE", "Options", "Stigma"]
