/* The kernels' activations and what bound/curve.c proves about them. */
#ifndef TAUT_MODULE_CURVES_H
#define TAUT_MODULE_CURVES_H
#include "bound/curve.h"
#include "kernels/kernels.h"

taut_slopes taut_curve_slopes(taut_curve);
taut_slopes taut_curve_ratio(taut_curve);                    /* where f(x)/x lies */
taut_slopes taut_curve_near(taut_curve, double z, double r); /* secants between points of [z - r, z + r] */
const char *taut_curve_name(taut_curve);                     /* as recipes spell it */
#endif
