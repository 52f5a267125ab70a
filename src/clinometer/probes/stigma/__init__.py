"""Do models speak worse of people with stigmatized conditions?"""

from clinometer.probes.stigma.probe import PROBE

__all__ = ["PROBE"]
