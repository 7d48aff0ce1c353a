"""A node of the proof: what it states, each number confirmed, and nothing left over in the end."""
import numpy as np

from interval import Interval, interval
from norm import norm_is_at_most
from reader import need

class Claim:
    def __init__(self, node, rule, title, known=("rule", "name", "of", "lip", "out")):
        need(isinstance(node, dict) and node.get("rule") == rule, f"{title}: its rule must be {rule}")
        self.node, self.title, self.seen, self.below = node, title, set(known), []
        self.of = node.get("of", [])
        need(isinstance(self.of, list) and all(isinstance(part, dict) for part in self.of), f"{title}: its parts are no list of nodes")
        self.says_nothing = set(node) <= {"rule", "name", "lip", "out"} and node.get("lip") == node.get("out") == "inf"

    def number(self, key):
        self.seen.add(key)
        value = np.inf if self.node.get(key) == "inf" else self.node.get(key, 0.0)
        need(isinstance(value, float) and value >= 0, f"{self.title}: {key} is no number that can be stated")
        return value

    def at_least(self, key, truth):
        """The stated number, once it is no smaller than the truth."""
        value, truth = self.number(key), float(interval(truth).hi)
        need(value >= truth, f"{self.title}: {key} is stated as {value!r}, proved is {truth!r}")
        return Interval(value)

    def norm(self, key, matrix):
        value = self.number(key)
        need(norm_is_at_most(matrix, value), f"{self.title}: {key} is stated as {value!r}, which cannot be proved")
        return Interval(value)

    def numbers(self, key, count, good):
        """A list of choices."""
        self.seen.add(key)
        values = self.node.get(key)
        need(isinstance(values, list) and len(values) == count and all(isinstance(v, float) and good(v) for v in values),
             f"{self.title}: {key} is no list of {count} such numbers")
        return np.array(values)

    def part(self, node, rule):
        self.below.append(Claim(node, rule, f"{self.title}, {rule} {len(self.below)}", ("rule",)))
        return self.below[-1]

    def end(self):
        for key in self.node:
            need(key in self.seen, f"{self.title}: {key!a} does not belong there")
        for part in self.below:
            part.end()
