/* What stands as bf16 on a device is what a product would convert anew: random calls of slots, one right behind the other,
 * give the bits that they give when something else is asked of the device between any two, so that nothing stands. */
#include "base/alloc.h"
#include "kernels/pair.h"

enum { SIDE = 24, LEN = 68000, WHOLE = 256, LONG = WHOLE * WHOLE, ARRAYS = 5, CALLS = 42, HALF = 33000 };

typedef struct {
    taut_real *x[ARRAYS];
    taut_sum *room;
    taut_index *ids;
    bool apart; /* something is asked between calls */
} scene;

static scene scene_new(const double *numbers, bool apart)
{
    scene s = { .room = table_sums(cpu, 4, 0), .apart = apart };
    s.ids = cpu->alloc(WHOLE * sizeof(int32_t));
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
    cpu->release(s->ids);
}

/* What a call does: its slot, and the numbers that it draws, the same for both scenes. */
typedef struct {
    int slot, a, b, c, d;
    int64_t rows, count, heads, dh, n, t, at; /* at: where it begins, in rows of SIDE */
    bool ta, tb, flag;
} call;

static call draw(void)
{
    static const int64_t heads[] = { 1, 3, 8 }, widths[] = { 1, 3, 8, 20, 72, 128 };
    call c = {
        .slot = (int)rng_int(0, 27), .rows = SIDE << rng_int(0, 1), .count = rng_int(1, 3), .ta = rng_int(0, 1)
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

/* A product that reads one of the arrays of c, and writes the one that c has not. */
static call of_product(const call *c)
{
    const int of[] = { c->a, c->b, c->c, c->d }, which = (int)rng_int(0, 3);
    return (call){ .slot = 0,
                   .a = of[which],
                   .b = of[(which + 1) % 4],
                   .c = 10 - c->a - c->b - c->c - c->d,
                   .rows = SIDE,
                   .at = rng_int(0, 1) ? c->at : 0,
                   .ta = rng_int(0, 1),
                   .flag = true };
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

/* Attention by position, there and back. */
static void mix(const scene *s, const call *c)
{
    const taut_kernels *k = cpu;
    taut_real *x = taut_at(k, s->x[c->a], c->at * SIDE), *p = s->x[c->d];
    const int64_t span = c->flag ? c->rows : 2 * c->rows - 1;
    const taut_distance a = { c->n, c->heads, c->rows, c->dh, span, c->flag, 0, taut_at(k, s->x[c->c], HALF) };
    k->distance_softmax(p, x, &a);
    k->distance_mix(taut_at(k, s->x[c->b], c->tb ? c->count : 0), p, x, &a, c->ta);
    k->distance_mix_vjp(s->x[c->c], s->x[c->b], x, &a);
    k->distance_softmax_vjp(taut_at(k, p, HALF), s->x[c->c], p, &a);
}

/* Rows of a table, and what is lost by rows. */
static void by_ids(const scene *s, const call *c)
{
    int32_t ids[WHOLE];
    taut_real *x = s->x[c->a], *y = s->x[c->b];
    for (int i = 0; i < WHOLE; i++) ids[i] = (int32_t)((7 * i + c->at) % SIDE);
    cpu->put_index(s->ids, ids, WHOLE);
    if (c->slot == 22) {
        cpu->cross_entropy(c->flag ? x : c->ta ? y : NULL, s->room, x, s->ids, c->rows, SIDE, 0.5);
        return;
    }
    cpu->gather(y, x, s->ids, c->rows, SIDE);
    cpu->scatter(c->flag ? x : s->x[c->c], SIDE, y, s->ids, c->rows, SIDE);
}

/* The same place, perhaps, for other numbers. */
static void renew(taut_real **x, const double *numbers)
{
    cpu->release(*x);
    *x = taut_reals(cpu, LEN);
    cpu->put(*x, numbers, LEN);
}

/* Sums of arrays, and of rows. */
static void combine(const scene *s, const call *c)
{
    const taut_kernels *k = cpu;
    taut_real *x = taut_at(k, s->x[c->a], c->at * SIDE), *y = s->x[c->b], *z = s->x[c->c], *w = s->x[c->d];
    switch (c->slot) {
    case 23: {
        taut_real *both[] = { y, z }, *from[] = { x, w };
        k->axpby_all(both, 0.5, from, c->ta ? 0.5 : 0, 2, LEN / 2);
        break;
    }
    case 24:
        k->axpby_by(y, SIDE + 4 * c->ta, (taut_factor){ 0.5, NULL }, x, SIDE, (taut_factor){ 0.5, NULL }, c->rows,
                    SIDE);
        break;
    case 25: {
        const taut_term terms[] = { { { 0.5, NULL }, x, SIDE }, { { 0.25, NULL }, z, 0 } };
        k->blend(c->flag ? x : y, SIDE, terms, 2, c->rows, SIDE);
        break;
    }
    case 26:
        k->dot_rows(z, c->ta ? w : NULL, x, y, c->rows, SIDE);
        break;
    case 27:
        k->centre_rows(c->flag ? x : y, x, c->rows, SIDE);
        k->normalise_slope(z, y, NULL, x, w, c->rows, SIDE, c->tb);
        k->lengths_jvp(w, x, y, z, 1, c->rows, SIDE);
        break;
    }
}

/* Slots that are no products, beside those that run calls itself. */
static void other(const scene *s, const call *c)
{
    const taut_kernels *k = cpu;
    const int64_t at = c->at * SIDE, rows = c->rows, len = c->count == 3 ? LONG + c->at : rows * SIDE;
    taut_real *x = taut_at(k, s->x[c->a], at), *y = s->x[c->b], *z = s->x[c->c], *w = s->x[c->d];
    switch (c->slot) {
    case 13: /* long ones are read 16 bytes at a time */
        k->add_rows(c->flag ? x : y, x, z, c->count == 3 ? LONG / SIDE + 1 : rows, SIDE, c->ta ? 1 : 8);
        break;
    case 14:
        k->axpby(c->flag ? x : y, 0.5, z, c->ta ? 0.5 : 0, len);
        break;
    case 15:
        k->mul_rows(c->flag ? x : y, x, z, rows, SIDE);
        break;
    case 16:
        k->copy_rows(y, SIDE + c->count - 1, x, SIDE, rows, SIDE);
        break;
    case 17:
        mix(s, c);
        break;
    case 18:
        k->lengths(y, x, c->n, rows, SIDE);
        k->lengths_vjp(z, w, x, y, c->n, rows, SIDE);
        break;
    case 19:
        k->mean_tokens(y, x, c->n, rows, SIDE);
        k->spread_tokens(z, y, c->n, rows, SIDE);
        break;
    case 20:
        k->dot(s->room, x, 0, y, 0, 1, len);
        k->sum_op(taut_sum_at(s->room, 1), TAUT_SUM_UNIT, 0.5, s->room, NULL, 1);
        k->add_sum(z, 1, taut_sum_at(s->room, 1), 1);
        break;
    case 21:
    case 22:
        by_ids(s, c);
        break;
    default:
        combine(s, c);
    }
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
        if (c->flag) renew(&s->x[c->b], numbers + at);
        if (!c->flag) k->put(x, numbers + at, len);
        break;
    default:
        other(s, c);
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
    /* what a call writes or reads is a factor right before it, and right behind */
    for (int i = 0; i + 2 < CALLS; i += 3) {
        calls[i + 1] = draw();
        calls[i] = calls[i + 2] = of_product(&calls[i + 1]);
    }
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

/* Memory grows when what stood is overwritten and asked for again; where there is none, products go on.  What they end with. */
static double *growth(bool short_of)
{
    enum { LAYERS = 12, LAST = LAYERS - 1 };
    taut_real *x[LAYERS];
    double *got = doubles(LONG);
    for (int i = 0; i < LONG; i++) got[i] = (i % 101 - 50) / 50.0;
    for (int i = 0; i < LAYERS; i++) x[i] = taut_reals(cpu, LONG);
    cpu->put(x[LAST], got, LONG);
    for (int turn = 0; turn < 40; turn++) {
        if (short_of && turn == 1) taut_alloc_fail_at(1);
        for (int i = 0; i < LAST; i++) cpu->pointwise(x[i], i ? x[i - 1] : x[LAST], TAUT_TANH, LONG);
        for (int i = 0; i < LAST; i++)
            cpu->gemm(x[LAST], x[i], x[LAST - 1 - i], WHOLE, WHOLE, WHOLE, false, true, 0.3, 0.5);
    }
    taut_alloc_fail_at(0);
    cpu->get(got, x[LAST], LONG);
    CHECK(cpu->read(NULL, NULL, 0) == TAUT_OK, "nothing failed");
    for (int i = 0; i < LAYERS; i++) cpu->release(x[i]);
    return got;
}

static void growths(void)
{
    double *grown = growth(false), *kept = growth(true), most = 0;
    for (int i = 0; i < LONG; i++) most = fmax(most, fabs(grown[i]));
    CHECK(most > 0.01 && isfinite(most), "numbers that mean something");
    CHECK(memcmp(grown, kept, LONG * sizeof *kept) == 0, "the same bits, whether memory grew or not");
    free(grown), free(kept);
}

int main(void)
{
    const char *name = getenv("TAUT_KERNELS");
    if (!name || strcmp(name, "cuda") != 0) return test_skip("bf16 is for floats on a device: TAUT_KERNELS=cuda");
    pair_begin();
    for (case_no = 0; case_no < effort(400); case_no++) sequence();
    growths();
    CHECK(10 * wild <= case_no, "most end with numbers whose bits mean something");
    CHECK(cpu->products(TAUT_PRODUCTS_FP32) == TAUT_OK, "and back");
    return test_end("lowered", "%d sequences of %d calls", case_no, CALLS);
}
