"""Response curves: each metric as a function of the dial that it claims to measure."""

from portrayal.lab.curves.claims import Claim, claims_of
from portrayal.lab.curves.curve import Curve
from portrayal.lab.curves.plan import FULL, QUICK, Budget
from portrayal.lab.curves.run import curves
from portrayal.lab.curves.write import read_curves, write_curves

__all__ = ["FULL", "QUICK", "Budget", "Claim", "Curve", "claims_of", "curves", "read_curves", "write_curves"]
