/* The ref backend: double, plain loops, the definition of every slot.  A declaration takes its type from
 * the table, so a definition that drifts from the contract does not compile. */
#ifndef TAUT_KERNELS_REF_H
#define TAUT_KERNELS_REF_H
#include "kernels/kernels.h"

#define REF_SLOT(slot) __typeof__(*((taut_kernels *)0)->slot) taut_ref_##slot

REF_SLOT(alloc);
REF_SLOT(release);
REF_SLOT(put);
REF_SLOT(get);
REF_SLOT(sync);
REF_SLOT(axpby);
REF_SLOT(dot);
REF_SLOT(gemm);
REF_SLOT(cholesky_inverse);
REF_SLOT(add_rows);
REF_SLOT(sum_rows);
REF_SLOT(mul_rows);
REF_SLOT(dot_rows);
REF_SLOT(copy_rows);
REF_SLOT(mean_tokens);
REF_SLOT(spread_tokens);
REF_SLOT(pixels);
REF_SLOT(pixels_vjp);
REF_SLOT(pointwise);
REF_SLOT(pointwise_slope);
REF_SLOT(normalise);
REF_SLOT(normalise_slope);
REF_SLOT(centre_rows);
REF_SLOT(unit_rows);
REF_SLOT(unit_rows_slope);
REF_SLOT(sketch);
REF_SLOT(sketch_jvp);
REF_SLOT(sketch_vjp);
REF_SLOT(attention);
REF_SLOT(attention_jvp);
REF_SLOT(attention_vjp);
REF_SLOT(sparse_pick);
REF_SLOT(sparse);
REF_SLOT(sparse_jvp);
REF_SLOT(sparse_vjp);
REF_SLOT(halve);
REF_SLOT(halve_slope);
REF_SLOT(lift);
REF_SLOT(lift_jvp);
REF_SLOT(lift_vjp);
REF_SLOT(attlip);
REF_SLOT(attlip_grad);
REF_SLOT(attlip_hvp);
REF_SLOT(route);
REF_SLOT(route_jvp);
REF_SLOT(route_vjp);
REF_SLOT(nearest);
REF_SLOT(cluster_means);
REF_SLOT(cluster_means_jvp);
REF_SLOT(cluster_means_vjp);
REF_SLOT(clustered);
REF_SLOT(clustered_jvp);
REF_SLOT(clustered_vjp);
REF_SLOT(distance_softmax);
REF_SLOT(distance_softmax_vjp);
REF_SLOT(distance_mix);
REF_SLOT(distance_mix_vjp);
REF_SLOT(attention_jasmin);
REF_SLOT(rope);
REF_SLOT(sort_groups);
REF_SLOT(permute_groups);
REF_SLOT(dominance);
REF_SLOT(dominance_vjp);
REF_SLOT(dropout);
REF_SLOT(gather);
REF_SLOT(scatter);
REF_SLOT(cross_entropy);
REF_SLOT(shared_cross_entropy);
REF_SLOT(squared_error);
REF_SLOT(sgd);
REF_SLOT(adamw);
#endif
