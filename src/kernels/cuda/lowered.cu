/* One piece of memory, written round and round.  It has room for the pair of factors that a product has.  When a factor is asked
 * for that stood and was overwritten, it is doubled: so that in the end what a pass forward left is still there on the way
 * back, but to no more than four times what stands at once, nor than half of the memory that is free.  Whoever leaves arrays
 * there gets no place when it is too small. */
#include "kernels/cuda/lowered.h"

enum { THREADS = 256, ARRAYS = 512, UNIT = 256 };

/* x as bf16 at `at`, without what lies between its rows and matrices. */
struct standing {
    cuda_floats x; /* x.x NULL: nothing */
    size_t at, bytes;
    bool gone; /* it would stand, had it not been overwritten */
};

static struct {
    char *room;
    size_t size, top;
    bool tight, full; /* it is to grow; there was no memory to grow, or others needed it */
    standing array[ARRAYS];
    int next, used;
    uint64_t asked; /* of the device, by the end of the last slot that said what it writes */
} low;

static bool contiguous(const cuda_floats *x)
{
    return x->steps.row == x->cols && (x->count == 1 || x->steps.next == x->rows * x->cols);
}

static int64_t length(const cuda_floats *x) { return x->rows * x->cols * x->count; }

/* Bytes from the first number to behind the last. */
static int64_t extent(const cuda_floats *x)
{
    return 4 * ((x->count - 1) * x->steps.next + (x->rows - 1) * x->steps.row + x->cols);
}

static size_t bytes_of(int64_t len) { return ((size_t)len * 2 + UNIT - 1) / UNIT * UNIT; }

static void forget(void) { low.next = low.used = 0; }

static void grow(void)
{
    const size_t more = 2 * low.size;
    size_t free = 0, total = 0;
    void *room = NULL;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) (void)cudaGetLastError();
    if (more <= (free + low.size) / 2 && !cuda_host()->alloc_fails()) room = cuda_more(more);
    low.tight = false, low.full = !room;
    if (!room) return;
    forget();
    cuda_note(cudaFree(low.room), "bf16"); /* waits for whoever uses it */
    low.room = (char *)room, low.size = more, low.top = 0;
}

bool cuda_lowered_give_back(void)
{
    if (!low.room) return false;
    forget();
    cuda_note(cudaFree(low.room), "bf16");
    low.room = NULL, low.size = low.top = 0, low.full = true;
    return true;
}

size_t cuda_lowered_size(void) { return low.size; }

static bool reserve(size_t bytes)
{
    if (low.tight && !low.full) grow();
    if (bytes <= low.size) return true;
    const bool full = low.full;
    (void)cuda_lowered_give_back();
    low.full = full;
    low.room = (char *)cuda_memory(bytes, bytes + bytes / 4, &low.size);
    return low.room != NULL;
}

/* A factor was overwritten: there is to be more memory if all that would stand takes over half of what there is. */
static void miss(void)
{
    size_t all = 0;
    for (int i = 0; i < low.used; i++) all += low.array[i].x.x ? low.array[i].bytes : 0;
    low.tight = 2 * all > low.size;
}

/* An array of that name that stands; NULL: none does. */
static standing *find(const cuda_floats *x)
{
    for (int i = 0; i < low.used; i++) {
        standing *s = &low.array[i];
        if (s->x.x != x->x) continue;
        const bool plain = contiguous(x) && contiguous(&s->x) && length(x) <= length(&s->x);
        const bool same = plain || (s->x.rows == x->rows && s->x.cols == x->cols && s->x.count == x->count &&
                                    s->x.steps.row == x->steps.row && s->x.steps.next == x->steps.next);
        if (same && !s->gone) return s;
        if (same) miss();
    }
    return NULL;
}

/* An entry of the table for x: one of nothing, if there is one, or of x as it was before it was overwritten. */
static standing *entry(const cuda_floats *x, const standing *stays)
{
    for (int i = 0; i < low.used; i++)
        if (!low.array[i].x.x || (low.array[i].gone && low.array[i].x.x == x->x)) return &low.array[i];
    if (low.used < ARRAYS) return &low.array[low.used++];
    if (&low.array[low.next] == stays) low.next = (low.next + 1) % ARRAYS;
    standing *s = &low.array[low.next];
    low.next = (low.next + 1) % ARRAYS;
    return s;
}

/* Room for x; what stood there is gone, but for `stays`, which it does not touch.  NULL: there is none beside that. */
static standing *place(const cuda_floats *x, const standing *stays)
{
    const size_t bytes = bytes_of(length(x));
    for (int tries = 0; tries < 3; tries++) {
        if (low.top + bytes > low.size) low.top = 0;
        if (!stays || low.top >= stays->at + stays->bytes || low.top + bytes <= stays->at) break;
        low.top = stays->at + stays->bytes;
        if (tries == 2) return NULL;
    }
    for (int i = 0; i < low.used; i++) {
        standing *s = &low.array[i];
        s->gone = s->gone || (s->at < low.top + bytes && low.top < s->at + s->bytes);
    }
    standing *s = entry(x, stays);
    *s = { *x, low.top, bytes, false };
    low.top += bytes;
    return s;
}

/* y: the rows and matrices of x without what lies between them.  Block: a row. */
static __global__ void rows_to_bf16(__nv_bfloat16 *y, const float *x, int64_t rows, int64_t cols, cuda_steps steps)
{
    const int64_t row = (int64_t)blockIdx.x % rows, matrix = blockIdx.x / rows;
    const float *from = x + matrix * steps.next + row * steps.row;
    for (int64_t c = threadIdx.x; c < cols; c += THREADS) y[blockIdx.x * cols + c] = __float2bfloat16(from[c]);
}

/* The same without anything between them, eight numbers a thread; both begin at multiples of 16 bytes. */
static __global__ void to_bf16(__nv_bfloat16 *y, const float *x, int64_t len)
{
    const int64_t first = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * 8;
    if (first + 8 <= len) {
        const float4 a = *(const float4 *)(x + first), b = *(const float4 *)(x + first + 4);
        __nv_bfloat162 all[4] = { __floats2bfloat162_rn(a.x, a.y), __floats2bfloat162_rn(a.z, a.w),
                                  __floats2bfloat162_rn(b.x, b.y), __floats2bfloat162_rn(b.z, b.w) };
        *(uint4 *)(y + first) = *(const uint4 *)all;
    } else
        for (int64_t i = first; i < len; i++) y[i] = __float2bfloat16(x[i]);
}

static standing *convert(const cuda_floats *x, const standing *stays)
{
    standing *s = place(x, stays);
    if (!s) return NULL;
    __nv_bfloat16 *y = (__nv_bfloat16 *)(low.room + s->at);
    const float *from = (const float *)x->x;
    const int64_t len = length(x);
    if (contiguous(x) && (uintptr_t)from % 16 == 0)
        to_bf16<<<(unsigned)((len + 8 * THREADS - 1) / (8 * THREADS)), THREADS, 0, cuda_stream()>>>(y, from, len);
    else
        rows_to_bf16<<<(unsigned)(x->rows * x->count), THREADS, 0, cuda_stream()>>>(y, from, x->rows, x->cols,
                                                                                    x->steps);
    cuda_note(cudaGetLastError(), "to_bf16");
    return s;
}

static void replace(cuda_floats *x, const standing *s)
{
    x->x = low.room + s->at;
    x->steps = { x->cols, x->steps.next ? x->rows * x->cols : 0 };
}

bool cuda_lowered_pair(cuda_floats *a, cuda_floats *b)
{
    if (!reserve(bytes_of(length(a)) + bytes_of(length(b)))) {
        cuda_fault("out of memory: factors in bf16");
        return false;
    }
    standing *left = find(a), *right = find(b);
    if (!left) left = convert(a, right);
    if (left) right = find(b); /* perhaps the same */
    if (left && !right) right = convert(b, left);
    if (!left || !right) { /* what stands lies in the way */
        forget();
        low.top = 0;
        left = convert(a, NULL), right = convert(b, left);
    }
    replace(a, left), replace(b, right);
    return true;
}

void cuda_lowered_begin(void)
{
    if (low.asked != cuda_asked()) forget();
}

void cuda_lowered_wrote(const void *y, size_t bytes)
{
    const char *from = (const char *)y;
    for (int i = 0; i < low.used; i++) {
        standing *s = &low.array[i];
        const char *x = (const char *)s->x.x;
        if (x && x < from + bytes && from < x + extent(&s->x)) s->x.x = NULL;
    }
}

void cuda_lowered_end(void) { low.asked = cuda_asked(); }

bool cuda_lowered_places(void **at, const void *const *x, int count, int64_t len)
{
    const size_t all = (size_t)count * bytes_of(len);
    if (cuda_products() != TAUT_PRODUCTS_BF16 || len == 0 || all > low.size) return false;
    if (low.top + all > low.size) low.top = 0;
    for (int i = 0; i < count; i++) {
        const cuda_floats one = { x[i], 1, len, 1, { len, 0 } };
        at[i] = low.room + place(&one, NULL)->at;
    }
    return true;
}
