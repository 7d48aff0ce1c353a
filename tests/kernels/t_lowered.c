/* What stands as bf16 on a device is what a product would convert anew: random calls of slots, one right behind the other,
 * give the bits that they give when something else is asked of the device between any two, so that nothing stands. */
#include "kernels/pair.h"

enum { SIDE = 24, LEN = 68000, WHOLE = 256, LONG = WHOLE * WHOLE, ARRAYS = 5, CALLS = 40, HALF = 33000 };

typedef struct {
    taut_real *x[ARRAYS];
    taut_sum *room;
    bool apart; /* something is asked between calls */
} scene;

static scene scene_new(const double *numbers, bool apart)
{
    scene s = { .room = table_sums(cpu, 4, 0), .apart = apart };
    for (int i = 0; i < ARRAYS; i++) {
        s.x[i] = taut_reals(cpu, LEN);
        cpu->put(s.x[i], numbers + i * LEN, LEN);
    }
    return s;
}

static void scene_free(scene *s)
{
    for (int i = 0; i < ARRAYS; i++) cpu->release(s->x[i]);
    cpu->release(s->room);
}

/* What a call does: its slot, and the numbers that it draws, the same for both scenes. */
typedef struct {
    int slot, a, b, c, d;
    int64_t rows, count, heads, dh, n, t, at; /* at: where it begins, in rows of SIDE */
    bool ta, tb, flag;
} call;

static call draw(void)
{
    static const int64_t heads[] = { 1, 3, 8 }, widths[] = { 1, 3, 8, 20, 64, 128 };
    call c = {
        .slot = (int)rng_int(0, 15), .rows = SIDE << rng_int(0, 1), .count = rng_int(1, 3), .ta = rng_int(0, 1)
    };
    c.heads = heads[rng_int(0, 2)], c.dh = widths[rng_int(0, c.heads == 8 ? 3 : 5)];
    c.n = rng_int(1, 2), c.t = rng_int(0, 1) ? c.rows : rng_int(1, 40);
    c.at = rng_int(0, 2) ? 0 : rng_int(1, SIDE);
    c.tb = rng_int(0, 1), c.flag = rng_int(0, 1);
    c.a = (int)rng_int(0, ARRAYS - 1);
    do c.b = (int)rng_int(0, ARRAYS - 1);
    while (c.b == c.a);
    do c.c = (int)rng_int(0, ARRAYS - 1);
    while (c.c == c.a || c.c == c.b);
    do c.d = (int)rng_int(0, ARRAYS - 1);
    while (c.d == c.a || c.d == c.b || c.d == c.c);
    return c;
}

/* Attention and its vjp; more queries than keys only where all see all, so that no sum of nothing is met. */
static void attend(const scene *s, const call *c)
{
    const taut_kernels *k = cpu;
    taut_real *x = taut_at(k, s->x[c->a], c->at * SIDE), *y = s->x[c->b], *z = s->x[c->c], *w = s->x[c->d];
    const taut_attn a = { c->n, c->heads, c->rows, c->t, c->dh, 0.3, c->flag && c->rows <= c->t, false, 0 };
    const int64_t over = c->n * c->rows * c->heads * c->dh, under = c->n * c->t * c->heads * c->dh;
    if (over > HALF || under > HALF) return;
    k->attention(z, w, x, y, taut_at(k, y, HALF), &a);
    k->attention_vjp(taut_at(k, z, HALF), taut_at(k, w, 1000), taut_at(k, w, 1000 + HALF), y, z, w, x, y,
                     taut_at(k, y, HALF), &a);
}

/* The same place, perhaps, for other numbers. */
static void renew(taut_real **x, const double *numbers)
{
    cpu->release(*x);
    *x = taut_reals(cpu, LEN);
    cpu->put(*x, numbers, LEN);
}

static void run(scene *s, const call *c, const double *numbers)
{
    static const taut_curve curves[] = { TAUT_GELU, TAUT_ABS, TAUT_TANH };
    static const taut_products hows[] = { TAUT_PRODUCTS_FP32, TAUT_PRODUCTS_BF16, TAUT_PRODUCTS_BF16 };
    const taut_kernels *k = cpu;
    const int64_t at = c->at * SIDE, rows = c->rows, len = c->count == 3 ? LONG + c->at : rows * SIDE;
    taut_real *x = taut_at(k, s->x[c->a], at), *y = s->x[c->b], *z = s->x[c->c], *w = s->x[c->d];
    if (s->apart) k->put_sum(s->room, NULL, 1);
    switch (c->slot) {
    case 0:
    case 1: /* a product, into another array or behind its own factor */
        k->gemm(c->flag ? z : taut_at(k, s->x[c->a], LEN - SIDE * SIDE), x, y, SIDE, SIDE, SIDE, c->ta, c->tb, 0.03, 0);
        break;
    case 2: /* with itself */
        k->gemm(z, x, x, SIDE, SIDE, rows, true, false, 0.02, 0.3);
        break;
    case 3:
        k->gemm_each(z, z, x, c->flag ? x : y, c->count, SIDE, SIDE, SIDE, c->ta, c->tb, 0.03, 0.3);
        break;
    case 4:
        k->affine(z, x, y, c->flag ? taut_at(k, y, 2 * SIDE * SIDE) : NULL, rows, SIDE, SIDE, 0.03);
        break;
    case 5:
        k->pointwise(c->flag ? x : y, x, curves[c->rows % 3], len);
        break;
    case 6:
        k->pointwise_slope(c->flag ? x : y, x, z, curves[c->count - 1], len);
        break;
    case 7: {
        const taut_scaled also = { y, w, taut_at(k, w, SIDE) };
        k->normalise(c->ta ? x : z, taut_at(k, w, 2 * SIDE), c->flag ? &also : NULL, x, rows, SIDE, c->tb, 1e-3);
        break;
    }
    case 8:
        k->sum_rows(c->flag ? z : y, x, rows, SIDE, 1);
        break;
    case 9:
        k->rope(c->flag ? x : z, x, rows, rows, c->heads, SIDE / c->heads, 100, c->ta ? 1 : -1);
        break;
    case 10:
        attend(s, c);
        break;
    case 11:
        CHECK(k->products(hows[c->count - 1]) == TAUT_OK, "all are there");
        break;
    case 12:
        renew(&s->x[c->b], numbers + at);
        break;
    default:
        k->put(x, numbers + at, len);
    }
}

static int wild; /* sequences that end with numbers that are not finite */

static void sequence(void)
{
    bool tame = true;
    double *numbers = doubles(ARRAYS * LEN), *got[2] = { doubles(LEN), doubles(LEN) };
    for (int64_t i = 0; i < ARRAYS * LEN; i++) numbers[i] = rng_pm();
    scene s[2] = { scene_new(numbers, false), scene_new(numbers, true) };
    call calls[CALLS];
    for (int i = 0; i < CALLS; i++) calls[i] = draw();
    /* chance seldom reads at once what was left of a long array */
    calls[0] = (call){ .slot = 5, .a = 0, .b = 1, .c = 2, .d = 3, .rows = SIDE, .count = 3, .at = 1 };
    calls[1] = (call){ .slot = 0, .a = 2, .b = 1, .c = 3, .d = 4, .rows = SIDE, .flag = true };
    for (int j = 0; j < 2; j++) {
        CHECK(cpu->products(TAUT_PRODUCTS_BF16) == TAUT_OK, "bf16 is there");
        /* there is room for as many as a product had */
        cpu->gemm(s[j].x[0], s[j].x[1], s[j].x[2], WHOLE, WHOLE, WHOLE, false, false, 0.01, 0);
        for (int i = 0; i < CALLS; i++) run(&s[j], &calls[i], numbers);
    }
    for (int i = 0; i < ARRAYS; i++) {
        for (int j = 0; j < 2; j++) cpu->get(got[j], s[j].x[i], LEN);
        CHECK(memcmp(got[0], got[1], LEN * sizeof(double)) == 0, "the same bits, whatever stands");
        for (int64_t e = 0; e < LEN; e++) tame = tame && isfinite(got[0][e]);
    }
    wild += !tame;
    scene_free(&s[0]), scene_free(&s[1]);
    free(numbers), free(got[0]), free(got[1]);
}

int main(void)
{
    const char *name = getenv("TAUT_KERNELS");
    if (!name || strcmp(name, "cuda") != 0) return test_skip("bf16 is for floats on a device: TAUT_KERNELS=cuda");
    pair_begin();
    for (case_no = 0; case_no < effort(400); case_no++) sequence();
    CHECK(10 * wild <= case_no, "most end with numbers whose bits mean something");
    CHECK(cpu->products(TAUT_PRODUCTS_FP32) == TAUT_OK, "and back");
    return test_end("lowered", "%d sequences of %d calls", case_no, CALLS);
}
