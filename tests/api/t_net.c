/* The public header alone: what it promises of training, models, numbers through them and data. */
#include "runs.h"

static int stop_at_three(const taut_step_facts *f, void *arg)
{
    ++*(int *)arg;
    return f->step == 3;
}

static bool same_bytes(const char *a, const char *b)
{
    size_t na = 0, nb = 0;
    char *x = temp_get(a, &na), *y = temp_get(b, &nb);
    const bool same = x && y && na == nb && memcmp(x, y, na) == 0;
    free(x), free(y);
    return same;
}

/* A finished run is refused unless overwriting is asked for; one that was stopped and resumed ends with the same bits. */
static void training(void)
{
    taut_result r, again;
    int calls = 0;
    r = train_text(temp_path("a"));
    CHECK(r.steps == 6 && isfinite(r.val_loss) && r.val_acc >= 0 && isnan(r.val_mae) && !r.stopped, "the result");
    CHECK(taut_train_recipe(&again, "recipes/tiny-free.ini", temp_path("a"),
                            OPTIONS(taut_train_options, .overrides = text_set, .count = 7)) != TAUT_OK,
          "a run in the folder is refused");
    must(taut_train_recipe(
             &again, "recipes/tiny-free.ini", temp_path("b"),
             OPTIONS(taut_train_options, .overrides = text_set, .count = 7, .progress = stop_at_three, .arg = &calls)),
         "a stopped run");
    CHECK(again.stopped && again.steps == 3 && calls == 3, "it stopped where the callback said");
    CHECK(isnan(again.val_loss) && isnan(again.val_acc), "and did not wait for the validation split");
    must(taut_train_recipe(&again, "recipes/tiny-free.ini", temp_path("b"),
                           OPTIONS(taut_train_options, .overrides = text_set, .count = 7, .resume = 1)),
         "resume");
    CHECK(again.steps == 6 && !again.stopped, "to the end");
    CHECK(same_bytes(temp_path("a/model.safetensors"), temp_path("b/model.safetensors")), "the same bits");
}

/* <gy, J tx> = <J^T gy, tx>, and J tx is the derivative. */
static void derivatives(taut_net *net, const taut_inputs *x, int64_t in, int64_t out)
{
    double *tx = doubles(in), *gx = doubles(in), *ty = doubles(out), *gy = doubles(out), *y = doubles(2 * out);
    double *moved = doubles(in);
    fill(tx, in), fill(gy, out);
    must(taut_net_jvp(net, ty, tx, x), "jvp");
    must(taut_net_vjp(net, gx, gy, x), "vjp");
    const double left = dot(gy, ty, out), right = dot(gx, tx, in);
    CHECK_NEAR(left, right, 1e-11 * (1 + fabs(left)), "adjoint");
    if (x->ids)
        must(taut_net_embed(net, moved, x), "embed");
    else
        memcpy(moved, x->reals, (size_t)in * sizeof *moved);
    const double h = 1e-6;
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < in; i++) moved[i] += (side ? -2 : 1) * h * tx[i];
        must(taut_net_logits(net, y + side * out, &(taut_inputs){ .n = x->n, .t = x->t, .reals = moved }), "moved");
    }
    double worst = 0;
    for (int64_t i = 0; i < out; i++) worst = fmax(worst, fabs((y[i] - y[out + i]) / (2 * h) - ty[i]));
    CHECK_LE(worst, 1e-7 * (1 + norm(ty, out)), "the derivative"); /* h^2 and 2^-53 / h, with room */
    free(tx), free(gx), free(ty), free(gy), free(y), free(moved);
}

static void text_model(void)
{
    taut_net *net = NULL;
    taut_net_facts f;
    must(taut_net_open(&net, temp_path("a"), OPTIONS(taut_open_options, .kernels = "ref")), "open a run's folder");
    must(taut_net_look(net, &f), "look");
    CHECK(f.kind == TAUT_READS_TEXT && f.context == 16 && f.width == 16 && f.vocabulary == f.classes, "what it is");
    const int32_t ids[] = { 1, 2, 3, 4, 5, 6 };
    const taut_inputs x = { .n = 2, .t = 3, .ids = ids };
    double *y = doubles(6 * f.classes), *one = doubles(3 * f.classes), loss, gx[6 * 16];
    must(taut_net_logits(net, y, &x), "logits");
    must(taut_net_logits(net, one, &(taut_inputs){ .n = 1, .t = 3, .ids = ids + 3 }), "one of them");
    for (int64_t i = 0; i < 3 * f.classes; i++) CHECK_NEAR(y[3 * f.classes + i], one[i], 1e-12, "examples do not meet");
    derivatives(net, &x, 6 * f.width, 6 * f.classes);
    const int32_t labels[] = { 0, 1, -1, 2, 3, -1 };
    must(taut_net_grad(net, gx, &loss, labels, &x), "grad");
    double mean = 0;
    for (int r = 0; r < 6; r++) {
        double sum = 0;
        for (int64_t c = 0; c < f.classes; c++) sum += exp(y[r * f.classes + c]);
        if (labels[r] >= 0) mean += (log(sum) - y[r * f.classes + labels[r]]) / 4;
    }
    CHECK_NEAR(loss, mean, 1e-12, "the mean cross-entropy of what is asked");
    char *text = NULL;
    int32_t *back = NULL;
    int64_t count = 0;
    must(taut_net_decode(net, &text, ids, 6), "decode");
    must(taut_net_encode(net, &back, &count, text), "encode");
    CHECK(count == 6 && memcmp(back, ids, sizeof ids) == 0, "there and back");
    taut_string_free(text), taut_ids_free(back);
    free(y), free(one);
    taut_net_free(net);
}

/* What is written is read back as float32, changes the file and the function. */
static void weights(void)
{
    taut_net *net = NULL, *other = NULL;
    taut_net_facts f;
    taut_tensor_facts t;
    must(taut_net_create(&net, "recipes/tiny-free.ini", text_set, 7, NULL), "create");
    must(taut_net_look(net, &f), "look");
    int64_t sum = 0;
    for (int i = 0; i < f.tensors; i++) {
        must(taut_net_tensor(net, i, &t), "a tensor");
        sum += t.rows * t.cols;
    }
    CHECK(sum == f.weights, "all weights have a name");
    double *w = doubles(t.rows * t.cols), *v = doubles(t.rows * t.cols);
    for (int64_t i = 0; i < t.rows * t.cols; i++) w[i] = 0.1 * (double)(i + 1);
    must(taut_net_write(net, t.name, w, t.rows * t.cols), "write");
    must(taut_net_save(net, temp_path("w.safetensors")), "save");
    must(taut_net_open(&other, temp_path("w.safetensors"), NULL), "open");
    must(taut_net_read(other, t.name, v, t.rows * t.cols), "read");
    for (int64_t i = 0; i < t.rows * t.cols; i++) CHECK_NEAR(v[i], w[i], 0x1p-24 * w[i], "as float32");
    CHECK(v[0] != w[0], "0.1 is no float32 number");
    free(w), free(v);
    taut_net_free(net), taut_net_free(other);
}

static void images_and_data(void)
{
    taut_net *net = NULL;
    taut_data *data = NULL;
    taut_net_facts f;
    taut_data_facts d;
    taut_score score, few;
    const taut_result r = train_images(temp_path("img"));
    must(taut_net_open(&net, temp_path("img"), OPTIONS(taut_open_options, .kernels = "ref")), "open");
    must(taut_net_look(net, &f), "look");
    CHECK(f.kind == TAUT_READS_IMAGES && f.context == 1 && f.vocabulary == 0 && f.answers == 1, "an image model");
    must(taut_data_open(&data, net, NULL), "its data");
    must(taut_data_look(data, &d), "look at them");
    CHECK(d.width == f.width && d.asked == 1 && d.count[TAUT_VALID] > 0 && d.count[TAUT_TEST] == 0, "sizes");
    double *x = doubles(d.width);
    int32_t label = -1;
    must(taut_data_get(data, TAUT_VALID, 0, &(taut_sample){ .reals = x, .targets = &label }), "an example");
    CHECK(label >= 0 && label < f.classes, "its class");
    must(taut_data_get(data, TAUT_VALID, 1, &(taut_sample){ .targets = &label }), "only its class");
    derivatives(net, &(taut_inputs){ .n = 1, .t = 1, .reals = x }, d.width, f.classes);
    must(taut_net_score(net, &score, data, TAUT_VALID, 0), "score");
    CHECK_NEAR(score.accuracy, r.val_acc, 1e-12, "the summary is of the saved file");
    CHECK_NEAR(score.loss, r.val_loss, 1e-4, "and its loss, float against double");
    must(taut_net_score(net, &few, data, TAUT_VALID, 5), "of five");
    CHECK(few.examples == 5 && score.examples == d.count[TAUT_VALID], "as many as asked");
    taut_net_free(net);
    must(taut_data_get(data, TAUT_VALID, 2, &(taut_sample){ .reals = x }), "data outlive the model");
    taut_data_free(data);
    free(x);
}

/* Windows of the same length that are cut elsewhere: reading on behind what is wanted would go unnoticed. */
static void other_answers(void)
{
    taut_net *near = NULL, *far = NULL;
    taut_data *data = NULL;
    taut_score score;
    const char *cut[] = { "model.label=12", "model.ahead=12", "model.width=16", "model.heads=2", "data.length=600" };
    must(taut_net_create(&near, "recipes/forecast-waves.ini", cut, 5, NULL), "create");
    cut[0] = "model.label=8", cut[1] = "model.ahead=16";
    must(taut_net_create(&far, "recipes/forecast-waves.ini", cut, 5, NULL), "create");
    must(taut_data_open(&data, near, NULL), "data");
    must(taut_net_score(near, &score, data, TAUT_VALID, 4), "its own");
    CHECK(taut_net_score(far, &score, data, TAUT_VALID, 4) == TAUT_BAD_DATA, "more rows than the data ask for");
    taut_data_free(data);
    taut_net_free(near), taut_net_free(far);
}

/* A classifier's constant in norm flat is about texts of its own length: shorter ones are not run. */
static void whole_texts(void)
{
    taut_net *net = NULL;
    taut_net_facts facts;
    int32_t ids[32] = { 0 };
    double y[64];
    must(taut_net_create(&net, "recipes/classifier-animals.ini", NULL, 0, NULL), "create");
    must(taut_net_look(net, &facts), "look");
    CHECK(facts.context == 32 && facts.classes <= 64, "its sizes");
    must(taut_net_logits(net, y, &(taut_inputs){ .ids = ids, .n = 1, .t = 32 }), "a text");
    CHECK(taut_net_logits(net, y, &(taut_inputs){ .ids = ids, .n = 1, .t = 31 }) == TAUT_BAD_CALL, "a shorter one");
    taut_net_free(net);
}

int main(void)
{
    test_begin();
    temp_begin();
    taut_threads_set(1);
    CHECK(strcmp(taut_version(), TAUT_VERSION) == 0, "library and header are of one version");
    training();
    text_model();
    weights();
    images_and_data();
    other_answers();
    whole_texts();
    return test_end("net", "training, numbers, weights, data");
}
