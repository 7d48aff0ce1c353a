#include "attack/loss.h"

#include <math.h>
#include <string.h>

taut_loss taut_loss_for(taut_loss wanted, int64_t classes)
{
    if (wanted == TAUT_LOSS_DLR_T && classes < 4) wanted = TAUT_LOSS_DLR;
    if (wanted == TAUT_LOSS_DLR && classes < 3) wanted = TAUT_LOSS_MARGIN;
    return wanted;
}

const char *taut_loss_name(taut_loss kind)
{
    static const char *const names[] = { "cross-entropy", "DLR", "targeted DLR", "margin" };
    return names[kind];
}

static double cross_entropy(double *w, const double *z, int64_t classes, int32_t label)
{
    double most = z[0], sum = 0;
    for (int64_t i = 1; i < classes; i++) most = fmax(most, z[i]);
    for (int64_t i = 0; i < classes; i++) sum += exp(z[i] - most);
    for (int64_t i = 0; w && i < classes; i++) w[i] = exp(z[i] - most) / sum - (i == label);
    return log(sum) - (z[label] - most);
}

/* The indices of the four largest logits (as many as there are), the largest first, equal ones in their order. */
static void leaders(int64_t top[4], const double *z, int64_t classes)
{
    int64_t count = 0;
    for (int64_t i = 0; i < classes; i++) {
        int64_t at = count < 4 ? count++ : 4;
        for (; at > 0 && z[i] > z[top[at - 1]]; at--)
            if (at < 4) top[at] = top[at - 1];
        if (at < 4) top[at] = i;
    }
}

double taut_loss_at(double *w, taut_loss kind, const double *z, int64_t classes, int32_t label, int32_t wrong)
{
    int64_t top[4] = { 0 };
    double unused[1], *out = w ? w : unused;
    if (kind == TAUT_LOSS_CE) return cross_entropy(w, z, classes, label);
    leaders(top, z, classes);
    const int64_t other = kind == TAUT_LOSS_DLR_T ? wrong : top[0] == label ? top[1] : top[0];
    const double up = z[other] - z[label];
    const int64_t third = kind == TAUT_LOSS_MARGIN ? 0 : top[2], fourth = kind == TAUT_LOSS_DLR_T ? top[3] : third;
    const double width = kind == TAUT_LOSS_MARGIN ? 1 : z[top[0]] - (z[third] + z[fourth]) / 2 + 1e-12;
    if (w) memset(w, 0, (size_t)classes * sizeof *w);
    if (w) {
        out[other] += 1 / width;
        out[label] -= 1 / width;
    }
    if (w && kind != TAUT_LOSS_MARGIN) { /* the quotient's other half */
        const double slope = up / (width * width);
        out[top[0]] -= slope;
        out[third] += slope / 2;
        out[fourth] += slope / 2;
    }
    return up / width;
}
