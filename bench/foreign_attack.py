"""Attacks of other packages on taut.torch.module(model), beside taut's own and what is certified, l2 in pixels of [0, 1].
A certificate that one of them beats ends this with exit code 2.  Needs PyTorch, torchattacks and foolbox.
    PYTHONPATH=python python3 bench/foreign_attack.py MODEL EXAMPLES EPS..."""
import sys

import foolbox
import numpy as np
import torch
import torchattacks

import taut
import taut.torch

STEPS = 40


def theirs(net, images, labels, eps):
    """(name, moved images) of each."""
    torch.manual_seed(1)
    yield "torchattacks PGDL2", torchattacks.PGDL2(net, eps=eps, alpha=eps / 5, steps=STEPS, random_start=True)(images, labels)
    seen = foolbox.PyTorchModel(net, bounds=(0, 1), device="cpu")
    for name, attack in (("foolbox L2 PGD", foolbox.attacks.L2PGD(steps=STEPS)),
                         ("foolbox L2 DeepFool", foolbox.attacks.L2DeepFoolAttack(steps=STEPS))):
        yield name, attack(seen, images, labels, epsilons=eps)[1]


model, count, radii = taut.load(sys.argv[1]), int(sys.argv[2]), [float(e) for e in sys.argv[3:]]
net = taut.torch.module(model).eval()
x, y = model.data().examples("valid", count)
images, labels = torch.tensor(x).movedim(-1, 1).contiguous(), torch.tensor(y).long()
cert = model.certify(norm="flat", x=x, y=y, radius=max(radii))
right, beaten = model(x).argmax(-1) == y, 0
print(f"{model!r}, constant {cert.lipschitz:.4g}: {right.sum()} of {count} right")
for eps in radii:
    print(f"eps {eps}: {(right & (cert.radii >= eps)).sum()} certified", end="")
    own = model.attack(x, y, "pgd,aa-standard", norm="L2", eps=eps, steps=STEPS)  # raises if it beats a certificate
    print(f", {own.standing[0]} stand against taut's pgd and aa-standard", end="")
    for name, moved in theirs(net, images, labels, eps):
        now = model(taut.torch.to_numpy(moved, True)).argmax(-1)
        far = (moved.double() - images).flatten(1).norm(dim=1).numpy()
        within = far <= eps * (1 + 1e-6)
        beaten += int(((now != cert.predicted) & (far < cert.radii)).sum())
        print(f", {(right & ~((now != y) & within)).sum()} against {name}", end="")
    print(flush=True)
print(f"{beaten} certificates beaten; radii up to {np.max(cert.radii):.3g}")
sys.exit(2 if beaten else 0)
