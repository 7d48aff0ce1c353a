/* An attention whose outside is qkv.h, so that its own file holds only what stands between q, k, v and o.
 *
 * A module of this family has a taut_cored as its first member and these answers in its ops: core_plan, core_forward,
 * core_jvp, core_vjp.  Trace: q, k, v, o, then the core's own. */
#ifndef TAUT_MODULE_CORE_H
#define TAUT_MODULE_CORE_H
#include "module/kind.h"
#include "module/qkv.h"

/* What a core keeps and needs, in elements, for queries and keys of these shapes; o has the shape of q. */
typedef struct {
    int64_t trace, scratch;
} taut_core_room;

typedef struct {
    taut_core_room (*room)(const taut_module *, taut_shape q, taut_shape k);
    /* t.o from t.q, t.k and t.v; d are tangents (to d.o from d.q, d.k, d.v) or cotangents (the other way) */
    void (*forward)(const taut_module *, taut_run *, const taut_inside *t, taut_span trace);
    void (*jvp)(const taut_module *, taut_run *, const taut_inside *d, const taut_inside *t, taut_span trace);
    void (*vjp)(const taut_module *, taut_run *, const taut_inside *d, const taut_inside *t, taut_span trace);
} taut_core;

typedef struct {
    taut_module base;
    const taut_core *core;
    taut_around around;
    taut_qkv qkv;
} taut_cored;

taut_cored cored_of(const taut_module_ops *, const taut_core *, const taut_around *);
taut_around around_of(const taut_site *);
taut_plan core_plan(const taut_module *, taut_shape in);
void core_forward(const taut_module *, taut_run *, taut_tensor y, taut_point at);
void core_jvp(const taut_module *, taut_run *, taut_tensor ty, taut_tensor tx, taut_point at);
void core_vjp(const taut_module *, taut_run *, taut_tensor gx, taut_tensor gy, taut_point at);

void core_describe(const taut_cored *, taut_ledger *); /* heads, out, queries; a core adds its own */

/* The bound of y from one of o: lip, how long o is and how wrong it is computed, a token. */
taut_answer core_answer(const taut_cored *, taut_ask, taut_up lip, taut_up size, taut_up round);

/* Heads one behind the other, each an example of its own: y (heads, n, t, wide) from x (n, t, heads*dh), the first dh
 * of `wide` columns; and back.  The other columns of y stay as they are. */
void core_split(const taut_kernels *, taut_real *y, int64_t wide, taut_tensor x, int64_t heads);
void core_join(const taut_kernels *, taut_tensor x, const taut_real *y, int64_t wide, int64_t heads);
#endif
