"""How steep a classifier of images with a head of rows w_i is at images, against what a bound of 1 up to its features allows: of
the two likeliest classes i and j the l2 norm of the gradient of f_i - f_j over |w_i - w_j|.  It takes the recipe's word for the 1
(model.unit_head, orthogonal matrices); `taut info RUN --bound` proves what it is.

    PYTHONPATH=python python3 bench/image_slopes.py runs/cifar [--images 64] [--kernels cpu]"""
import argparse
import configparser

import numpy as np

import taut


def steepness(model, images):
    """The share of each image."""
    rows = np.asarray(model.weights["head.weight"], dtype=np.float64)
    logits = np.asarray(model(images)).reshape(len(images), -1)
    first, second = np.argsort(-logits, axis=1)[:, :2].T
    asked = np.zeros(logits.shape)
    here = np.arange(len(images))
    asked[here, first], asked[here, second] = 1, -1
    gradient = np.asarray(model.grad(images, asked)).reshape(len(images), -1)
    return np.linalg.norm(gradient, axis=1) / np.linalg.norm(rows[first] - rows[second], axis=1)


def main():
    read = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    read.add_argument("run")
    read.add_argument("--images", type=int, default=64)
    read.add_argument("--kernels")
    given = read.parse_args()
    try:
        model = taut.load(given.run, kernels=given.kernels)
        recipe = configparser.ConfigParser(interpolation=None)
        recipe.read_string(model.info["recipe"])
        if not recipe["model"].getboolean("unit_head", False):
            read.exit(1, "image_slopes: wants a run of a recipe with model.unit_head = true\n")
        data = model.data()
        images, _ = data.examples("valid", max(1, min(given.images, data.count["valid"])))
    except taut.Error as why:
        read.exit(1, f"image_slopes: {why}\n")
    share = steepness(model, np.asarray(images))
    print(f"{share.mean():.3f} of what is allowed on average, {share.min():.3f} to {share.max():.3f}, at {len(share)} images")


if __name__ == "__main__":
    main()
