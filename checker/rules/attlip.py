"""Attention as a proximal step: docs/certificate.md has the formula, docs/modules/attlip.md the proof."""
import numpy as np

from interval import Interval, interval, sqrt

def eta_of(m):
    return interval(m.get("root")[0]) * m.get("root")[0] if m.c["eta"] == 0 else interval(m.c["eta"])

def attlip(m, claim, x, where):
    eta = claim.at_least("eta", eta_of(m) if eta_of(m).lo > 0 else np.inf)
    defect = claim.at_least("defect", np.inf if m.c["steps"] > 0 else 2.0 * (1 + m.c["reflected"]) * eta * m.c["tol"])
    root = sqrt(float(m.t))
    return Interval(np.inf) if defect.hi == np.inf else Interval(1.0) if where.flat else root, root * x + defect
