/* Own weights in, certificate out.  Usage: weights RECIPE FILE
 *     cc weights.c -o weights $(pkg-config --cflags --libs taut) && ./weights recipes/mlp-shapes-small.ini own
 * writes own.safetensors and own.json, which `taut check own.json own.safetensors` confirms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <taut.h>

static void must(taut_status s)
{
    if (s == TAUT_OK) return;
    fprintf(stderr, "%s\n", taut_last_error());
    exit(1);
}

/* Half the identity, as far as the matrix goes: its norm is 1/2.  Biases are 0. */
static void fill(double *w, const taut_tensor_facts *t)
{
    memset(w, 0, (size_t)(t->rows * t->cols) * sizeof *w);
    for (int64_t i = 0; t->cols > 1 && i < t->rows && i < t->cols; i++) w[i * t->cols + i] = 0.5;
}

int main(int argc, char **argv)
{
    taut_net *net;
    taut_net_facts about;
    taut_tensor_facts t;
    taut_cert *cert;
    taut_cert_facts proved;
    taut_layer_facts layer;
    taut_check_facts checked;
    char model[1024], file[1024], text[32];
    if (argc != 3) return fprintf(stderr, "usage: %s RECIPE FILE\n", argv[0]), 1;
    snprintf(model, sizeof model, "%s.safetensors", argv[2]);
    snprintf(file, sizeof file, "%s.json", argv[2]);
    must(taut_net_create(&net, argv[1], NULL, 0, NULL));
    must(taut_net_look(net, &about));
    for (int i = 0; i < about.tensors; i++) {
        must(taut_net_tensor(net, i, &t));
        double *w = malloc((size_t)(t.rows * t.cols) * sizeof *w);
        if (!w) return 1;
        fill(w, &t);
        must(taut_net_write(net, t.name, w, t.rows * t.cols));
        free(w);
    }
    must(taut_net_save(net, model)); /* certificates are about bytes in a file */
    taut_net_free(net);
    must(taut_certify_file(&cert, model, NULL));
    must(taut_cert_look(cert, &proved));
    for (int i = 0; i < proved.layers; i++) {
        must(taut_cert_layer(cert, i, &layer));
        printf("  %-24s %-12s times %s\n", layer.path, layer.rule, taut_number_up(text, layer.lip));
    }
    must(taut_cert_save(cert, file));
    must(taut_check_certificate(&checked, file, model)); /* by other means than those that made it */
    printf("proved: %s-Lipschitz, %s\n", taut_number_up(text, proved.lip),
           checked.verdict == TAUT_CONFIRMED ? "and the checker agrees" : checked.why);
    taut_cert_free(cert);
    return checked.verdict == TAUT_CONFIRMED ? 0 : 2;
}
