/* Arb lives in FLINT since FLINT 3, and was a library of its own before. */
#ifndef TAUT_BOUND_ARB_INCLUDE_H
#define TAUT_BOUND_ARB_INCLUDE_H
#if __has_include(<flint/arb.h>)
#include <flint/arb.h>
#include <flint/arb_hypgeom.h>
#else
#include <arb.h>
#include <arb_hypgeom.h>
#endif
#endif
