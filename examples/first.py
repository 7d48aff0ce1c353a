"""Trains a vision transformer under a proved Lipschitz constant of 1, proves some predictions, and checks the proof.
    python3 examples/first.py recipes/vit-fashion-lip.ini runs/first"""
import sys

import taut

run = taut.train(sys.argv[1], sys.argv[2], set={"data.source": "shapes", "train.steps": 60}, progress=True)
model = taut.load(run.path)
cert = model.certify(norm="flat", examples=100, radius=2)
print(run, cert, taut.check(cert, model), sep="\n")
print(f"{(cert.right & (cert.radii > 0.25)).mean():.0%} are right and cannot be turned by moving the image by 0.25, l2")
