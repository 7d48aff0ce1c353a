/* Values of the functions of libm that the checker trusts, each the double nearest to the truth.  tests/check/t_arithmetic.c
 * holds them to Arb; the checker itself has nothing but this list. */
#ifndef TAUT_CHECK_KNOWN_H
#define TAUT_CHECK_KNOWN_H
#include <math.h>

typedef struct {
    const char *name;
    double (*f)(double);
    double x, y;
} ck_known;

static const ck_known ck_known_values[] = {
    /* clang-format off */
    { "exp", exp, -740.25, 0x0.0000000000042p-1022 }, { "exp", exp, -87.3, 0x1.09874c0b9cacbp-126 },
    { "exp", exp, -20.7, 0x1.195920309b9dap-30 }, { "exp", exp, -3.3, 0x1.2e259bb85be85p-5 },
    { "exp", exp, -0.7, 0x1.fc80db9dd5542p-2 }, { "exp", exp, -1e-05, 0x1.fffeb07515653p-1 },
    { "exp", exp, 0.3, 0x1.599058c8c1a96p+0 }, { "exp", exp, 1.1, 0x1.808883244d593p+1 },
    { "exp", exp, 9.9, 0x1.37697b5428d14p+14 }, { "exp", exp, 700.1, 0x1.058614179b2a5p+1010 },
    { "log", log, 1e-300, -0x1.5963447f87fb5p+9 }, { "log", log, 0.01, -0x1.26bb1bbb55515p+2 },
    { "log", log, 0.7, -0x1.6d3c324e13f5p-2 }, { "log", log, 1.0001, 0x1.a368d0657fcd4p-14 },
    { "log", log, 2.5, 0x1.d5240f0e0e078p-1 }, { "log", log, 10, 0x1.26bb1bbb55516p+1 },
    { "log", log, 10000, 0x1.26bb1bbb55516p+3 }, { "log", log, 1000000, 0x1.ba18a998fffap+3 },
    { "erf", erf, -5.1, -0x1.fffffffffecacp-1 }, { "erf", erf, -2.3, -0x1.ff6a295bcd35cp-1 },
    { "erf", erf, -0.9, -0x1.98045a6c8a2e6p-1 }, { "erf", erf, -0.3, -0x1.50838881dea0fp-2 },
    { "erf", erf, 1e-06, 0x1.2ee5a03c76587p-20 }, { "erf", erf, 0.2, 0x1.c8184b8b25f1cp-3 },
    { "erf", erf, 0.6, 0x1.352ca0235d4f7p-1 }, { "erf", erf, 1.2, 0x1.d214ac7b2d067p-1 },
    { "erf", erf, 1.9, 0x1.fc4f06f2b1c89p-1 }, { "erf", erf, 3.3, 0x1.ffff9966790c8p-1 },
    { "tanh", tanh, -18.5, -0x1.ffffffffffffep-1 }, { "tanh", tanh, -3.1, -0x1.fded130ca9124p-1 },
    { "tanh", tanh, -0.9, -0x1.6ebe982d6605dp-1 }, { "tanh", tanh, -0.2, -0x1.9439830b3a59p-3 },
    { "tanh", tanh, 1e-06, 0x1.0c6f7a0b5e767p-20 }, { "tanh", tanh, 0.1, 0x1.983d7795f413ap-4 },
    { "tanh", tanh, 0.5, 0x1.d9353d7568af3p-2 }, { "tanh", tanh, 1.3, 0x1.b933c726e9b3ap-1 },
    { "tanh", tanh, 2.2, 0x1.f3949a819042dp-1 }, { "tanh", tanh, 7.7, 0x1.fffff23d39f08p-1 },
    { "sin", sin, -1000.5, -0x1.fd948c50a7a0dp-1 }, { "sin", sin, -3, -0x1.210386db6d55bp-3 },
    { "sin", sin, -0.7, -0x1.49d6e694619b8p-1 }, { "sin", sin, 1e-05, 0x1.4f8b588e1e8a2p-17 },
    { "sin", sin, 0.4, 0x1.8ec3ae92b676bp-2 }, { "sin", sin, 1.5, 0x1.feb7a9b2c6d8bp-1 },
    { "sin", sin, 22, -0x1.220a29f6eb9f4p-7 }, { "sin", sin, 355, -0x1.f9bd0307d1de3p-16 },
    { "sin", sin, 511.5, 0x1.186b02cfb47d7p-1 }, { "sin", sin, 65535, 0x1.f67090db1f5c3p-1 },
    { "cos", cos, -1000.5, 0x1.8dbff75eb664fp-4 }, { "cos", cos, -3, -0x1.fae04be85e5d2p-1 },
    { "cos", cos, -0.7, 0x1.87996529f9d93p-1 }, { "cos", cos, 1e-05, 0x1.ffffffff920c8p-1 },
    { "cos", cos, 0.4, 0x1.d7954e7dba2f8p-1 }, { "cos", cos, 1.5, 0x1.21bd54fc5f9a7p-4 },
    { "cos", cos, 22, -0x1.fffadd8d4acdap-1 }, { "cos", cos, 355, -0x1.fffffffc18e4cp-1 },
    { "cos", cos, 511.5, -0x1.ac615fb99aa36p-1 }, { "cos", cos, 65535, 0x1.89eba92bf27c6p-3 },
    /* clang-format on */
};

typedef struct {
    double base, power, y;
} ck_known_power;

static const ck_known_power ck_known_powers[] = {
    /* clang-format off */
    { 10000, -0.03125, 0x1.7ff2224115d9ap-1 }, { 10000, -0.25, 0x1.999999999999ap-4 },
    { 10000, -0.71875, 0x1.5d931bc235544p-10 }, { 10000, -0.96875, 0x1.17a8e301c4436p-13 },
    { 500, -0.4375, 0x1.0e1f54705edb2p-4 }, { 2, -0.8, 0x1.2611186bae674p-1 },
    /* clang-format on */
};
#endif
