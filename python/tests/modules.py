"""What the tests of taut.torch do to a module first."""
import torch


def settled(module):
    """Norms, biases and strengths that are not what they start from."""
    torch.manual_seed(3)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.05 * torch.randn_like(p))
    return module.eval()
