/* Tensor cores: products of small matrices and loads of blocks, shared out over a warp as the chip's manual says; and halves. */
#include "cuda_fp16.h"
#include "machine.h"

/* c (16 x 8) += a (16 x 8 J) b (8 J x 8), shared out over a warp: with g = lane / 4 and t = lane % 4, part i < 4 of c is in row
 * g + 8 (i / 2) and column 2t + i % 2; number J r + j of a's 4 J in row g + 8 (r % 2) and column J t + j + 4 J (r / 2); number
 * J r + j of b's 2 J in row J t + j + 4 J r and column g.  Sums in double, rounded once. */
template <int J, class T> struct factors {
    T rows[16][8 * J], columns[8][8 * J]; /* of a, and of b */
};
template <int J, class T> static void multiply(T (&c)[4], const T (&a)[4 * J], const T (&b)[2 * J])
{
    const int g = emulate_lane() / 4, t = emulate_lane() % 4;
    auto *all = (factors<J, T> *)emulate_board();
    static_assert(sizeof *all <= 32 * EMULATE_MOST);
    for (int i = 0; i < 4 * J; i++) all->rows[g + i / J % 2 * 8][J * t + i % J + i / J / 2 * 4 * J] = a[i];
    for (int i = 0; i < 2 * J; i++) all->columns[g][J * t + i % J + i / J * 4 * J] = b[i];
    emulate_meet_warp();
    double sum[4] = {};
    for (int k = 0; k < 8 * J; k++)
        for (int i = 0; i < 4; i++)
            sum[i] += (double)all->rows[g + i / 2 * 8][k] * (double)all->columns[2 * t + i % 2][k];
    for (int i = 0; i < 4; i++) c[i] = (T)((double)c[i] + sum[i]);
}

void emulate_multiply(double (&c)[4], const double (&a)[4], const double (&b)[2]) { multiply<1>(c, a, b); }

void emulate_multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    float left[4], right[2];
    for (int i = 0; i < 4; i++) left[i] = __uint_as_float(a[i] & 0xffffe000u); /* the chip does not look at the rest */
    for (int i = 0; i < 2; i++) right[i] = __uint_as_float(b[i] & 0xffffe000u);
    multiply<1>(c, left, right);
}

static float number(unsigned pair, int which, bool brain)
{
    const uint16_t bits = (uint16_t)(pair >> 16 * which);
    return brain ? __uint_as_float((unsigned)bits << 16) : emulate_float(bits);
}

void emulate_multiply16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, bool brain)
{
    float left[8], right[4];
    for (int i = 0; i < 8; i++) left[i] = number(a[i / 2], i % 2, brain);
    for (int i = 0; i < 4; i++) right[i] = number(i / 2 ? b1 : b0, i % 2, brain);
    multiply<2>(c, left, right);
}

/* Lane 8 b + r says where row r of block b begins; every lane gets two neighbours of each block. */
void emulate_blocks(unsigned (&x)[4], const void *row, bool turned)
{
    const char *all = emulate_exchange(&row, sizeof row);
    const int g = emulate_lane() / 4, t = emulate_lane() % 4;
    for (int b = 0; b < 4; b++) {
        uint16_t two[2];
        for (int i = 0; i < 2; i++) {
            const uint16_t *from;
            memcpy(&from, all + (8 * b + (turned ? 2 * t + i : g)) * EMULATE_MOST, sizeof from);
            two[i] = from[turned ? g : 2 * t + i];
        }
        memcpy(&x[b], two, sizeof x[b]);
    }
}

uint16_t emulate_half(float x)
{
    const uint16_t sign = (uint16_t)(__float_as_uint(x) >> 16 & 0x8000);
    const float size = fabsf(x);
    if (isnan(x)) return 0x7fff;
    if (size >= 65520) return sign | 0x7c00;
    const int e = size < 0x1p-14f ? -14 : ilogbf(size);            /* below 2^-14 steps are those of 2^-14 */
    const unsigned steps = (unsigned)rintf(scalbnf(size, 10 - e)); /* one too many moves on to the next exponent */
    return (uint16_t)(sign + ((unsigned)(e + 14) << 10) + steps);
}

float emulate_float(uint16_t half)
{
    const unsigned e = half >> 10 & 31, m = half & 1023;
    const float small = (float)m * 0x1p-24f;
    const unsigned bits = e == 31 ? 0x7f800000u | m << 13 : (e + 112) << 23 | m << 13;
    const float size = e ? __uint_as_float(bits) : small;
    return half & 0x8000 ? -size : size;
}
