/* The formulas by themselves. */
#include "measure/published.h"

#include <math.h>

double printed_specformer_1(double n, double x, double nv, double nqk) { return n * (n + 1) * x * x * (nv * nqk + nv); }

double printed_castin_3_3(double n, double a, double nv) { return sqrt(3) * nv * sqrt(a * a * (4 * n + 1) + n); }

double castin_3_3(double n, double a, double nv) { return sqrt(3) * nv * sqrt(a * a * (n + 1) + n); }

double castin_3_5(double a, double nv) { return nv * (1 + 3 * a) * exp(2 * a); }

double castin_3_4_lower(double n, double gap, double nm) { return nm * sqrt(n - 1) / (1 + (n - 1) * exp(-gap)); }

double printed_castin_4_4(double a, double nv) { return castin_3_5(a, nv); }

/* nv ( sqrt(c (1 + a^2)) + a ), c = sum_k 1 / (1 + k e^-2a): query k sees k + 1 keys */
double castin_4_4(double n, double a, double nv)
{
    double c = 0;
    for (double k = 0; k < n; k++) c += 1 / (1 + k * exp(-2 * a));
    return nv * (sqrt(c * (1 + a * a)) + a);
}

double printed_castin_c_3(double n, double rho, double r, double nv)
{
    return sqrt(3) * nv * sqrt((rho * rho * r * r + 1) * n + rho * rho * r * r);
}

double castin_c_3(double n, double rho, double r, double r_t, double nv)
{
    return nv * (sqrt(n * (1 + rho * rho * r * r / 4)) + r / 2 * r_t / 2);
}

double printed_castin_e_3(double n, double r, double a, double nk, double nq, double bq, double nv)
{
    const double u = nq * r + bq;
    return sqrt(3) * nv * sqrt(a * a * r * r * r * r + n * (nk * u * u * r * r + 1));
}

double castin_e_3(double n, double r, double a, double nk, double nq, double bq, double nv)
{
    return printed_castin_e_3(n, r, a, nk * nk, nq, bq, nv);
}

double jasmin_3(double nv, double np, double nx, double a, double nm) { return nv * (np + 2 * nx * nx * a * nm); }

double jasmin_c(double nv, double np, double xm, double xat, double nx, double a)
{
    return nv * (np + xm * (xat + nx * a));
}

/* sqrt(n / dh) (4 f(n - 1) + 1) nq nv, f the inverse of x exp(x + 1), by Newton */
double kim_l2(double n, double dh, double nq, double nv)
{
    double f = log(1 + n);
    for (int i = 0; i < 60; i++) f -= (f * exp(f + 1) - (n - 1)) / ((1 + f) * exp(f + 1));
    return sqrt(n / dh) * (4 * f + 1) * nq * nv;
}
