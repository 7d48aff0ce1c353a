/* A Lipschitz layer of one's own before a model of taut's, and the constant of both.  Usage: layer RECIPE FOLDER
 *     cc layer.c -o layer $(pkg-config --cflags --libs taut) -lm && ./layer recipes/mlp-shapes-small.ini runs/layer
 * The layer g takes the mean of an image and the same image read backwards: linear, symmetric, of norm 1, and pixels stay in
 * [0, 1].  So f after g is as Lipschitz as f is proved to be.  The search climbs to their steepest direction at a grey image. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <taut.h>

static void must(taut_status s)
{
    if (s == TAUT_OK) return;
    fprintf(stderr, "%s\n", taut_last_error());
    exit(1);
}

static void g(double *y, const double *x, int64_t n) /* its jvp and its vjp are the same */
{
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] + x[n - 1 - i]) / 2;
}

static double size(const double *x, int64_t n)
{
    double sum = 0;
    while (n-- > 0) sum += x[n] * x[n];
    return sqrt(sum);
}

int main(int argc, char **argv)
{
    taut_net *net;
    taut_net_facts f;
    taut_cert *cert;
    taut_cert_facts proved;
    taut_result r;
    double slope = 0;
    char text[32];
    if (argc != 3) return fprintf(stderr, "usage: %s RECIPE FOLDER\n", argv[0]), 1;
    must(taut_train_recipe(&r, argv[1], argv[2], &(taut_train_options){ sizeof(taut_train_options), .overwrite = 1 }));
    must(taut_net_open(&net, argv[2], &(taut_open_options){ sizeof(taut_open_options), .kernels = "ref" }));
    must(taut_certify_file(&cert, argv[2],
                           &(taut_certify_options){ sizeof(taut_certify_options), .metric = TAUT_FLAT }));
    must(taut_cert_look(cert, &proved)), must(taut_net_look(net, &f));
    const int64_t n = f.width;
    double *x = calloc((size_t)(4 * n + f.classes), sizeof *x), *v = x + n, *gv = v + n, *back = gv + n, *ty = back + n;
    if (!x) return 1;
    for (int64_t i = 0; i < n; i++) x[i] = 0.5, v[i] = sin((double)i); /* g(x) = x */
    for (int step = 0; step < 50; step++) {
        g(gv, v, n);
        const double scale = size(v, n);
        for (int64_t i = 0; i < n; i++) gv[i] /= scale;
        must(taut_net_jvp(net, ty, gv, &(taut_inputs){ .n = 1, .t = 1, .reals = x }));
        slope = size(ty, f.classes);
        must(taut_net_vjp(net, back, ty, &(taut_inputs){ .n = 1, .t = 1, .reals = x }));
        g(v, back, n);
    }
    printf("slope found %.6g, proved %s\n", slope, taut_number_up(text, proved.lip));
    free(x), taut_cert_free(cert), taut_net_free(net);
    return slope <= proved.lip ? 0 : 2;
}
