/* The cpu backend: float, OpenMP and OpenBLAS.  Every file here is compiled once for each instruction set
 * (TAUT_VARIANT), so external names go through CPU(): taut_cpu_v3_gemm.  A declaration takes its type from
 * the table, so a definition that drifts from the contract does not compile.
 *
 * Same bits for any thread count: work is always cut at borders that depend on sizes alone, every piece is
 * one thread's, and pieces are added up in order. */
#ifndef TAUT_KERNELS_CPU_H
#define TAUT_KERNELS_CPU_H
#include "kernels/kernels.h"

/* A sanitizer build has no vectors, and clang warns of every loop that asks for them. */
#if defined __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#define CPU_PASTE(variant, slot) taut_cpu_##variant##_##slot
#define CPU_NAME(variant, slot)  CPU_PASTE(variant, slot)
#define CPU(slot)                CPU_NAME(TAUT_VARIANT, slot)
#define CPU_SLOT(slot)           __typeof__(*((taut_kernels *)0)->slot) CPU(slot)

enum { CPU_CHUNK = 8192 }; /* elements one thread takes at a time: worth a fork, small in cache */

static inline int64_t cpu_min(int64_t a, int64_t b) { return a < b ? a : b; }

CPU_SLOT(alloc);
CPU_SLOT(release);
CPU_SLOT(put);
CPU_SLOT(get);
CPU_SLOT(sync);
CPU_SLOT(axpby);
CPU_SLOT(dot);
CPU_SLOT(gemm);
CPU_SLOT(cholesky_inverse);
CPU_SLOT(add_rows);
CPU_SLOT(sum_rows);
CPU_SLOT(mul_rows);
CPU_SLOT(dot_rows);
CPU_SLOT(copy_rows);
CPU_SLOT(mean_tokens);
CPU_SLOT(spread_tokens);
CPU_SLOT(pixels);
CPU_SLOT(pixels_vjp);
CPU_SLOT(pointwise);
CPU_SLOT(pointwise_slope);
CPU_SLOT(normalise);
CPU_SLOT(normalise_slope);
CPU_SLOT(centre_rows);
CPU_SLOT(unit_rows);
CPU_SLOT(unit_rows_slope);
CPU_SLOT(sketch);
CPU_SLOT(sketch_jvp);
CPU_SLOT(sketch_vjp);
CPU_SLOT(attention);
CPU_SLOT(attention_jvp);
CPU_SLOT(attention_vjp);
CPU_SLOT(sparse_pick);
CPU_SLOT(sparse);
CPU_SLOT(sparse_jvp);
CPU_SLOT(sparse_vjp);
CPU_SLOT(halve);
CPU_SLOT(halve_slope);
CPU_SLOT(lift);
CPU_SLOT(lift_jvp);
CPU_SLOT(lift_vjp);
CPU_SLOT(attlip);
CPU_SLOT(attlip_grad);
CPU_SLOT(attlip_hvp);
CPU_SLOT(route);
CPU_SLOT(route_jvp);
CPU_SLOT(route_vjp);
CPU_SLOT(nearest);
CPU_SLOT(cluster_means);
CPU_SLOT(cluster_means_jvp);
CPU_SLOT(cluster_means_vjp);
CPU_SLOT(clustered);
CPU_SLOT(clustered_jvp);
CPU_SLOT(clustered_vjp);
CPU_SLOT(distance_softmax);
CPU_SLOT(distance_softmax_vjp);
CPU_SLOT(distance_mix);
CPU_SLOT(distance_mix_vjp);
CPU_SLOT(attention_jasmin);
CPU_SLOT(rope);
CPU_SLOT(sort_groups);
CPU_SLOT(permute_groups);
CPU_SLOT(dominance);
CPU_SLOT(dominance_vjp);
CPU_SLOT(dropout);
CPU_SLOT(gather);
CPU_SLOT(scatter);
CPU_SLOT(cross_entropy);
CPU_SLOT(shared_cross_entropy);
CPU_SLOT(squared_error);
CPU_SLOT(sgd);
CPU_SLOT(adamw);
#endif
