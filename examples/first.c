/* Trains a small GPT, asks it for logits, and proves how far they can move.  Usage: first RECIPE FOLDER
 *     cc first.c -o first $(pkg-config --cflags --libs taut) && ./first recipes/tiny.ini runs/first */
#include <stdio.h>
#include <stdlib.h>
#include <taut.h>

static void must(taut_status s) /* the library says what went wrong in one line and leaves the rest to us */
{
    if (s == TAUT_OK) return;
    fprintf(stderr, "%s\n", taut_last_error());
    exit(1);
}

int main(int argc, char **argv)
{
    const char *const shorter[] = { "train.steps=20", "model.norm=none", "model.width=16", "model.context=16" };
    const int32_t ids[] = { 1, 2, 3, 4 };
    taut_result r;
    taut_net *net;
    taut_net_facts about;
    taut_cert *cert;
    taut_cert_facts proved;
    if (argc != 3) return fprintf(stderr, "usage: %s RECIPE FOLDER\n", argv[0]), 1;
    must(taut_train_recipe(
        &r, argv[1], argv[2],
        &(taut_train_options){ .size = sizeof(taut_train_options), .overrides = shorter, .count = 4, .overwrite = 1 }));
    must(taut_net_open(&net, argv[2], NULL));
    must(taut_net_look(net, &about));
    double *logits = malloc((size_t)(4 * about.classes) * sizeof *logits);
    if (!logits) return 1;
    must(taut_net_logits(net, logits, &(taut_inputs){ .n = 1, .t = 4, .ids = ids }));
    must(taut_certify_file(&cert, argv[2], NULL));
    must(taut_cert_look(cert, &proved));
    printf("%lld weights, loss %.3f, first logit %.3f, proved constant %.17g (norm %s, l2)\n", (long long)about.weights,
           r.val_loss, logits[0], proved.lip, proved.metric == TAUT_FLAT ? "flat" : "tokens");
    free(logits);
    taut_cert_free(cert);
    taut_net_free(net);
    return 0;
}
