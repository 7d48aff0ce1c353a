"""A node of the proof: what it states, each number confirmed, and nothing left over in the end."""
import numpy as np

from interval import Interval, interval
from norm import norm_is_at_most
from reader import need

class Claim:
    def __init__(self, node, rule, title, known=("rule",)):
        need(isinstance(node, dict) and node.get("rule") == rule, f"{title}: its rule must be {rule}")
        self.node, self.title, self.seen, self.below, self.of = node, title, set(known), [], node.get("of", [])
        self.need(isinstance(self.of, list) and all(isinstance(part, dict) for part in self.of), "its parts are no list of nodes")
        self.says_nothing = set(node) <= {"rule", "name", "lip", "out"} and node.get("lip") == node.get("out") == "inf"

    def need(self, condition, why): need(condition, f"{self.title}: {why}")

    def number(self, key):
        self.seen.add(key)
        value = np.inf if self.node.get(key) == "inf" else self.node.get(key, 0.0)
        self.need(isinstance(value, float) and value >= 0, f"{key} is no number that can be stated")
        return value

    def at_least(self, key, truth):
        """The stated number, once it is no smaller than the truth."""
        value, truth = self.number(key), float(interval(truth).hi)
        self.need(value >= truth, f"{key} is stated as {value!r}, proved is {truth!r}")
        return Interval(value)

    def norm(self, key, matrix):
        value = self.number(key)
        self.need(norm_is_at_most(matrix, value), f"{key} is stated as {value!r}, which cannot be proved")
        return Interval(value)

    def numbers(self, key, count, good):
        """A list of choices."""
        self.seen.add(key)
        values = self.node.get(key)
        self.need(isinstance(values, list) and len(values) == count, f"{key} is no list of {count}")
        self.need(all(isinstance(v, float) and good(v) for v in values), f"{key} has numbers that cannot be chosen")
        return np.array(values)

    def part(self, node, rule):
        self.below.append(Claim(node, rule, f"{self.title}, {rule} {len(self.below)}"))
        return self.below[-1]

    def end(self):
        for claim in (self, *self.below):
            for key in claim.node:
                claim.need(key in claim.seen, f"{key!a} does not belong there")
