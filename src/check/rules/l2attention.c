/* Attention over distances, docs/certificate.md.  A head is U_h F(q), q = W_Q^h x, F_i = sum_j P_ij q_j with P the softmax
 * of -s |q_i - q_j|^2, and U_h = W_V^h W_Q^hT / sqrt(dh); in units of 1/sqrt(s) s is 1, and cancels.  Then
 *     dF_i = sum_j P_ij dq_j + 2 Cov_i dq_i + 2 sum_j P_ij (q_j - F_i) (q_i - q_j).dq_j,   m_i = sum_j P_ij |q_i - q_j|^2,
 * |Cov_i| <= m_i, and the last sum is at most 2 sqrt(m_i) sqrt(sum_j P_ij |q_i - q_j|^2 |dq_j|^2).  m_i is largest where all
 * |q_i - q_j|^2 are c + 1: m_i <= c, c e^(c+1) = T - 1.  tokens: 1 + 2 c + 2 c.  flat: as P_ij a <= a e^-a/(1 + e^-a) <=
 * w1 for a = |q_i - q_j|^2, summing over i first gives sqrt(T) + 2 c + 2 sqrt(c T w1). */
#include "check/examples/examples.h"
#include "check/rules/rules.h"

static ck_bound prove(ck_fields *f, ck_node *n, double x)
{
    const int64_t heads = (int64_t)n->k[0], dh = n->w[0].cols / heads;
    const double t = (double)n->tokens, w1 = 0.27846454276107383;
    if (n->k[1] == 0) return (ck_bound){ INFINITY, INFINITY }; /* not tied: its slopes grow without end */
    const cJSON *head = ck_heads(f, heads);
    const double c = ck_stated(f, "lambert"), grown = c * exp(ck_below(c + 1)) * (1 - 1e-14); /* libm: 4 ulp */
    double sum = 0;
    ck_accept(f, "lambert", c, grown >= t - 1 ? c : INFINITY);
    for (int64_t h = 0; h < heads; h++, head = head->next) {
        ck_fields g = ck_open(f->c, n->path, head, "head", "head");
        const double q = ck_claim_norm(&g, "query", ck_rows(n->w[0], h * dh, dh));
        const double v = q * q * ck_claim_norm(&g, "value", ck_rows(n->w[1], h * dh, dh));
        sum += v * v;
        ck_close(&g);
    }
    const double all = ck_over(sqrt(sum), ck_below(sqrt((double)dh))) * ck_claim_norm(f, "out_norm", n->w[2]);
    const double slope = f->c->out->flat ? sqrt(t) + 2 * c + 2 * sqrt(c * t * w1) : 1 + 4 * c;
    return (ck_bound){ slope * all, all * x };
}

const ck_rule ck_rule_l2attention = { .name = "l2attention",
                                      .prove = prove,
                                      .run = ck_attend,
                                      .fits = ck_heads_fit,
                                      .constants = { "#heads", "?tied" },
                                      .tensors = { { "q.weight", "dd" }, { "v.weight", "dd" }, { "o.weight", "dd" } } };
