/* The jasmin paper's table 2: CIFAR-10 under attack (Linf) with the paper's own seven settings, its figures beside ours.
 * In the place of the paper's ViT-B, pretrained on ImageNet, stands a small ViT trained from scratch with AdamW; attacks are
 * the paper's: FGSM and PGD (4 steps) at 2/255 and 4/255, torchattacks' AutoAttack with 10 steps at 2/255.  jasmin-table1 asks
 * what stronger penalties do, with three seeds. */
#include <stdio.h>

#include "papers/net.h"
#include "papers/paper.h"

static const char recipe[] = "[model]\narch = vit\nbias = false\npool = mean\ninit = orthogonal\n"
                             "[data]\nflip = true\n[train]\nwarmup = 20\nweight_decay = 0.01\neval_every = 0\n";

enum { FIGURES = 6 };
static const struct {
    const char *name, *line[5];
    double published[FIGURES]; /* per cent: clean, FGSM 2 and 4, PGD 2 and 4, AutoAttack 2 */
} methods[] = {
    { "baseline", { NULL }, { 98.56, 74.72, 67.17, 45.45, 19.71, 2.13 } },
    { "specformer 1e-3",
      { "train.penalty=specformer", "train.penalty_query=1e-3", NULL },
      { 98.36, 74.76, 68.61, 47.48, 21.37, 2.59 } },
    { "specformer 1e-4",
      { "train.penalty=specformer", "train.penalty_query=1e-4", NULL },
      { 98.46, 75.3, 68.71, 46.33, 19.82, 2.1 } },
    { "jasmin0 mean",
      { "train.penalty=jasmin", "train.penalty_weight=1e-2", NULL },
      { 98.55, 74.31, 68.08, 44.97, 19.31, 1.96 } },
    { "jasmin10 mean",
      { "train.penalty=jasmin", "train.penalty_weight=1e-3", "train.penalty_k=10", NULL },
      { 98.4, 75.86, 69.39, 50.26, 25, 2.8 } },
    { "jasmin0 max",
      { "train.penalty=jasmin", "train.penalty_weight=1e-2", "train.penalty_over=max", NULL },
      { 96.71, 65.59, 57.29, 44.98, 24.17, 4.38 } },
    { "jasmin10 max",
      { "train.penalty=jasmin", "train.penalty_weight=1e-3", "train.penalty_over=max", "train.penalty_k=10", NULL },
      { 98.21, 75.76, 69.1, 51.64, 26.35, 2.79 } },
};
enum { METHODS = sizeof methods / sizeof *methods };

static taut_status train(char run[4096], int method, const paper_options *o)
{
    static const char *const small[] = { "model.patch=8", "model.width=64",  "model.depth=4",   "model.heads=4",
                                         "model.mlp=128", "train.steps=300", "train.batch=128", "train.lr=0.002" };
    static const char *const full[] = { "model.patch=4", "model.width=192",  "model.depth=9",   "model.heads=12",
                                        "model.mlp=384", "train.steps=4000", "train.batch=512", "train.lr=0.001" };
    const char *line[16];
    char data[512];
    int count = 0;
    snprintf(data, sizeof data, "data.source=%s", paper_source(o, "cifar10", "shapes"));
    for (int i = 0; i < 8; i++) line[count++] = o->small ? small[i] : full[i];
    for (int i = 0; methods[method].line[i]; i++) line[count++] = methods[method].line[i];
    line[count++] = data;
    snprintf(run, 4096, "%s/%d", o->out, method);
    return paper_net_train(o, run, recipe, line, count);
}

static taut_status measure(double v[FIGURES], int method, const paper_options *o)
{
    char run[4096];
    paper_net p = { 0 };
    taut_status s = train(run, method, o);
    if (!s) s = paper_net_open(&p, o, run, paper_pick(o, 10, 300, 1000));
    if (!s) s = paper_net_protocol(v, &p, o->small);
    paper_net_close(&p);
    return s;
}

cJSON *paper_jasmin_table2(const paper_options *o)
{
    static const char *const columns[] = { "method",    "clean",     "fgsm 2/255", "fgsm 4/255",
                                           "pgd 2/255", "pgd 4/255", "ta-10 2/255" };
    cJSON *t = paper_table(
        "jasmin table 2: accuracy (%) on CIFAR-10 under attack (Linf), ours and (below each) as published", columns, 7,
        (paper_words){
            .published = "the row below each: ViT-B, pretrained on ImageNet, 40 epochs with CutMix and MixUp.",
            .ours = "seed 1, a small ViT from scratch, flips only, test images (small: 300 steps of 128, the first 300 "
                    "images, and Square has 100 queries instead of 5,000).",
            .why =
                "Neither pretrained on ImageNet nor trained for epochs, ours has other clean and attacked accuracies; "
                "what can be compared is a method with its own baseline.",
            .data = paper_source(o, "cifar10", "shapes") });
    for (int m = 0; m < METHODS; m++) {
        double v[FIGURES];
        if (!paper_wants(o, methods[m].name)) continue;
        cli_bar((double)m / METHODS, methods[m].name);
        if (measure(v, m, o)) {
            cJSON_Delete(t);
            return NULL;
        }
        paper_row(t, methods[m].name, v, FIGURES);
        paper_row(t, "published", methods[m].published, FIGURES);
    }
    return t;
}
