/* Every matrix has mass 1 and sensitivity 1.  Embedding and head have mass 1 each, all blocks together `mass`,
 * spread evenly over the six matrices of a block.  In g(f(x)) masses add, sensitivities multiply, and f's budget is
 * divided by g's sensitivity; so with a total mass of mass + 2 a matrix's share is
 *     (its mass / total) / (the product of the sensitivities behind it).
 * A residual keep x + mix f has sensitivity keep + mix times f's; attention 3 out (values, queries and keys 1 each);
 * an MLP 1.
 *
 * `scalar` counts keep, mix, out and the logit scale as what they are; `one` counts each as 1, as the published
 * sweeps did: the residual around an MLP then has 2, around attention 4, and shares fall by 8 a block towards the
 * input.  With depth 3 and mass 32, q k v, o, MLP and head have 0.9412, 0.3137, 0.3137, 0.0294 with `scalar` in
 * every block, and 0.0261, 0.0261, 0.0523, 0.0294 with `one` in the last. */
#include "train/constrain/shares.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool in_attention(const char *rest) { return strncmp(rest, ".attn.", 6) == 0; }

double taut_share_of(const taut_model_spec *s, taut_shares how, double mass, const char *path)
{
    if (how == TAUT_SHARES_NONE) return 1;
    const bool one = how == TAUT_SHARES_ONE;
    const bool plain = one || !s->convex;
    const double alpha = taut_spec_alpha(s);
    const double keep = plain ? 1 : 1 - alpha, mix = plain ? 1 : alpha;
    const double out = one || s->attention_out == 0 ? 1 : s->attention_out, logits = one ? 1 : s->logit_scale;
    const double total = mass + 2, attention = keep + mix * 3 * out, mlp = keep + mix;
    char *rest;
    if (strncmp(path, "block.", 6) != 0) return 1 / total / logits;
    const double behind = (double)(s->depth - 1) - (double)strtol(path + 6, &rest, 10);
    const double each = mass / (6 * (double)s->depth) / total / logits / pow(attention * mlp, behind);
    if (!in_attention(rest)) return each / mix;
    const bool last = strcmp(rest, ".attn.o.weight") == 0;
    return each / (mlp * mix * (last ? 1 : out));
}
