"""The rules by their names: each makes a constant and a size of numbers that it proves first (docs/certificate.md)."""
from rules.attention import attention, cosattention
from rules.attlip import attlip
from rules.l2attention import l2attention
from rules.plash import sketch
from rules.posattention import posattention
from rules.rivals import cosformer, jumping, performer
from rules.simple import (centernorm, channel, concat, halve, l2pool, layernorm, linear, mlp, neighbours, pixels, pointwise, pool,
                          position, prefix, residual, scale, sinusoid, unchanged)

LEAVES = {
    "linear": linear, "channel": channel, "prefix": prefix, "position": position, "pool": pool, "l2pool": l2pool, "concat": concat,
    "tokens": unchanged, "maxmin": unchanged, "neighbours": neighbours, "sinusoid": sinusoid, "scale": scale,
    "pointwise": pointwise, "halve": halve, "pixels": pixels, "layernorm": layernorm, "centernorm": centernorm,
    "mlp": mlp, "potential": residual, "sll": residual,
    "attention": attention, "cosattention": cosattention, "l2attention": l2attention, "posattention": posattention,
    "attlip": attlip, "sketch": sketch, "window": attention, "cosformer": cosformer, "performer": performer,
    "nystrom": jumping, "clustered": jumping, "probsparse": jumping,
}
