/* taut: train, measure, certify and attack Lipschitz-bounded transformers.
 *
 * The whole public interface: models, data, training, certificates and their check, attacks, measurements, plans, reports.
 * The program `taut` is arguments and printing around it.  docs/api.md lists its functions.
 *
 *     cc program.c $(pkg-config --cflags --libs taut)
 *
 * Rules for every function
 *   - A taut_status other than TAUT_OK means that nothing was done for you: outputs are indeterminate, handles are NULL, and
 *     taut_last_error() has one line for a person.  NULL where something is needed, a wrong size or a number out of range
 *     is answered with a status, never with a crash.  The library never prints and never exits, unless it finds a bug in itself.
 *   - Handles are opaque and belong to whoever made them; freeing NULL does nothing.  Strings and arrays that are passed in
 *     are read during the call and not kept.  Text that is handed out belongs to the caller: taut_string_free.
 *   - Options are structs that begin with their size; zero in any other field means the default, and NULL means all of
 *     them:  taut_net_open(&net, "runs/a", &(taut_open_options){ sizeof(taut_open_options), .kernels = "ref" });
 *   - Arrays of numbers are double, row-major; n examples stand one after the other.
 *   - Different handles may be used by different threads at the same time, one handle by one thread at a time.  Results
 *     do not depend on the number of threads.  A device serves one thread: there, one handle at a time.
 *   - "Proved" numbers (lip, radius, ...) hold for the bytes of the model's file under the assumptions of
 *     docs/guarantees.md.  +inf means that nothing is proved. */
#ifndef TAUT_H
#define TAUT_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TAUT_VERSION  "0.2.0"
#define TAUT_API      __attribute__((visibility("default")))
#define TAUT_MUST_USE __attribute__((warn_unused_result))

typedef enum {
    TAUT_OK,
    TAUT_NO_MEMORY,
    TAUT_BAD_FILE,   /* missing, unreadable, damaged, or not what it should be */
    TAUT_BAD_CONFIG, /* a recipe or an override that makes no sense */
    TAUT_BAD_DATA,   /* data that are not found or do not fit the model */
    TAUT_NOT_FINITE, /* a loss, a gradient, a weight or what a model says is NaN or infinite */
    TAUT_DEVICE,     /* a device failed or is not there, or nothing can be proved with this machine's arithmetic */
    TAUT_BAD_CALL    /* NULL, a size or an option that a function does not take, kernels of an unknown name */
} taut_status;

TAUT_API const char *taut_version(void);     /* of the library that runs; TAUT_VERSION is the header's */
TAUT_API const char *taut_last_error(void);  /* what went wrong last in this thread: one line, never NULL */
TAUT_API void taut_threads_set(int threads); /* for everything below; 0: OMP_NUM_THREADS, or one per processor */
TAUT_API void taut_string_free(char *text);
/* Six digits of a number from 0 up, for people.  What is concluded (a bound, a constant) is rounded up, what is assumed (a
 * radius, a region) is rounded down: what is printed claims no more than what is proved.  They return dst. */
TAUT_API const char *taut_number_up(char dst[32], double value);
TAUT_API const char *taut_number_down(char dst[32], double value);
/* The shortest decimal that reads back as the same bits.  Returns dst. */
TAUT_API const char *taut_number_print(char dst[32], double value);
/* Numbers as people write them, all of the text or nothing, in every locale: whole ones of 64 bits; decimals, or fractions
 * such as 8/255, finite, and 0 only if it is written.  They return 1, or 0 and leave *out alone. */
TAUT_API int taut_number_int(int64_t *out, const char *text);
TAUT_API int taut_number_real(double *out, const char *text);
/* The word of a list that somebody probably meant, capitals or not; NULL: none is near. */
TAUT_API const char *taut_nearest(const char *word, const char *const *list, int count);
/* This library as JSON: version, kernels (the build that the name, NULL for the default, stands for on this processor),
 * threads, blas, compiler; which rank this is of how many processes that were started together, and whether the last failure
 * was agreed on by all of them.  Kernels that are not there are refused. */
TAUT_API TAUT_MUST_USE taut_status taut_build_json(char **json, const char *kernels);

/* ---- Models -------------------------------------------------------------------------------------------------------- */

typedef struct taut_net taut_net;
typedef enum { TAUT_READS_TEXT, TAUT_READS_IMAGES, TAUT_READS_SERIES } taut_kind; /* what a model reads */

typedef struct {
    size_t size;
    const char *kernels;   /* "cpu" (float, fast; the default), "ref" (double, the definition), "cuda", "cuda64" */
    uint64_t seed;         /* of random weights; default: 1 for a built-in shape, the recipe's for taut_net_create */
    const char *tokenizer; /* folder of a checkpoint's tokenizer, or "bytes"; default: beside the checkpoint */
    const char *recipe;    /* .ini that says what a checkpoint without config.json is */
    int ignore_unknown;    /* leave tensors out that no such model has, instead of refusing */
    /* Of a checkpoint of another program: */
    const char *prefix;     /* of its tensors' names, where several fit; what stands elsewhere is left out */
    const char *const *map; /* `maps` times "mine=theirs", names of tensors: "block.#.mlp.in.weight=ffn.#.w1.weight" */
    const char *const *set; /* `sets` times "model.key=value": what no tensor tells, as the number of heads */
    int maps, sets;
} taut_open_options;

/* model: a file (model.safetensors), a run's folder, a checkpoint of another program (its folder, file or index of shards;
 * docs/howto/bring_my_model.md says which), or the name of a built-in shape ("gpt2", "bert-base") with random weights.  create: the untrained model of a recipe (.ini file), with `count`
 * overrides "section.key=value". */
TAUT_API TAUT_MUST_USE taut_status taut_net_open(taut_net **out, const char *model, const taut_open_options *);
TAUT_API TAUT_MUST_USE taut_status taut_net_create(taut_net **out, const char *recipe, const char *const *overrides,
                                                   int count, const taut_open_options *);
TAUT_API TAUT_MUST_USE taut_status taut_net_save(const taut_net *, const char *path); /* as model.safetensors */
TAUT_API void taut_net_free(taut_net *);

typedef struct {
    taut_kind kind;
    int64_t context;          /* tokens of an input: of texts at most, of classifiers and all others exactly */
    int64_t width;            /* numbers of one token: of an embedding, a whole image, a row of a series */
    int64_t vocabulary;       /* ids are 0 .. vocabulary-1; 0: inputs are reals */
    int64_t answers, classes; /* rows of logits, or features, per example (0: one per token), numbers in each */
    int64_t weights;          /* numbers in all tensors */
    int tensors;
} taut_net_facts;
TAUT_API TAUT_MUST_USE taut_status taut_net_look(const taut_net *, taut_net_facts *out);
/* The same and more as JSON: recipe, tree of modules, tensors. */
TAUT_API TAUT_MUST_USE taut_status taut_net_json(const taut_net *, char **json);

typedef struct {
    size_t size;
    const char *recipe; /* as in taut_open_options */
    uint64_t seed;      /* of a built-in shape; default 1 */
    int bound;          /* also prove both Lipschitz constants of the weights, for inputs that are not moved */
} taut_describe_options;
/* What a model is, as JSON, when nothing is to be done with it.  Of a Hugging Face checkpoint: what would become of every tensor
 * (folder, family, tensors, used, unused, unknown, notes).  Of all others: arch, sizes, tokenizer, tensors, and where
 * asked for bound_tokens, bound_flat ("inf": none) and `about`, the inputs that they hold for. */
TAUT_API TAUT_MUST_USE taut_status taut_describe_file(char **json, const char *model, const taut_describe_options *);

/* Why taut_net_open refuses a checkpoint of another program, as JSON: error (absent: it does not), family and prefix as far as they
 * are known, wanted (weights that are not there as they should be: name, from, shape, found) and unknown (tensors left over). */
TAUT_API TAUT_MUST_USE taut_status taut_checkpoint_json(char **json, const char *checkpoint, const taut_open_options *);

/* Weights by name ("block.0.attn.q.weight"); len is rows * cols.  Written numbers are rounded to float32.  Bounds are about
 * files: save before you certify. */
typedef struct {
    const char *name; /* lives as long as the model */
    int64_t rows, cols;
} taut_tensor_facts;
TAUT_API TAUT_MUST_USE taut_status taut_net_tensor(const taut_net *, int index, taut_tensor_facts *out);
TAUT_API TAUT_MUST_USE taut_status taut_net_read(const taut_net *, const char *name, double *w, int64_t len);
TAUT_API TAUT_MUST_USE taut_status taut_net_write(taut_net *, const char *name, const double *w, int64_t len);

/* n inputs: ids (n, t) of a text, t at most the context; or reals (n, t, width), t the context: images with pixels in
 * [0, 1], windows of a series, or embeddings in the place of ids (then t is at most the context).  The other is NULL. */
typedef struct {
    int64_t n, t;
    const int32_t *ids;
    const double *reals;
} taut_inputs;

/* y = f(x), (n, answers, classes), answers = t for a text.  vjp: gx = J^T gy, in the shape of reals; jvp: ty = J tx.  Of a
 * text, derivatives are with respect to the embeddings. */
TAUT_API TAUT_MUST_USE taut_status taut_net_logits(taut_net *, double *y, const taut_inputs *x);
TAUT_API TAUT_MUST_USE taut_status taut_net_vjp(taut_net *, double *gx, const double *gy, const taut_inputs *x);
TAUT_API TAUT_MUST_USE taut_status taut_net_jvp(taut_net *, double *ty, const double *tx, const taut_inputs *x);
/* The gradient with respect to the input of the mean cross-entropy of `labels` (one per row of logits; < 0: not asked). */
TAUT_API TAUT_MUST_USE taut_status taut_net_grad(taut_net *, double *gx, double *loss, const int32_t *labels,
                                                 const taut_inputs *x);
TAUT_API TAUT_MUST_USE taut_status taut_net_embed(taut_net *, double *reals, const taut_inputs *ids);

/* Text to ids and back; both results are the caller's: taut_string_free, taut_ids_free. */
TAUT_API TAUT_MUST_USE taut_status taut_net_encode(const taut_net *, int32_t **ids, int64_t *count, const char *text);
TAUT_API TAUT_MUST_USE taut_status taut_net_decode(const taut_net *, char **text, const int32_t *ids, int64_t count);
TAUT_API void taut_ids_free(int32_t *ids);

typedef struct {
    size_t size;
    const char *prompt; /* what it goes on from; default: a new line, or what the vocabulary has instead */
    int64_t length;     /* tokens to write; default 200 */
    double temperature; /* default 0.8 */
    int likeliest;      /* always the likeliest token, as temperature 0 would */
    int64_t top_k;      /* choose among so many of the likeliest tokens; default: among all */
    uint64_t seed;      /* default 1 */
} taut_continue_options;
/* Goes on with a text (a gpt alone can).  bytes, len: prompt and continuation as the vocabulary writes them, which may hold NUL
 * and half a character; json: { text, tokens }, with U+FFFD for what is no UTF-8.  Either may be NULL: not needed. */
TAUT_API TAUT_MUST_USE taut_status taut_net_continue(taut_net *, char **bytes, size_t *len, char **json,
                                                     const taut_continue_options *);

typedef struct {
    size_t size;
    const char
        *pool; /* "mean" of all tokens, or "class": the first one's; default: the model's own, mean where it has none */
    int unit;  /* divide each row by its length (l2), as cosines want it; the constant below is not about that */
} taut_features_options;
/* Features of `count` texts by an encoder, y (count, width): the output of its blocks, pooled, whatever head stands behind.  A
 * text is read between the vocabulary's own marks ([CLS] and [SEP], or <s> and </s>) where it has them, and is cut off at the
 * context; tokens (count) or NULL: how many it has before.  What is proved of a model without a head (model.head = none) is about
 * these numbers: they move by at most lip times as far as the embeddings of a text's tokens do. */
TAUT_API TAUT_MUST_USE taut_status taut_net_features(taut_net *, double *y, int64_t *tokens, const char *const *texts,
                                                     int64_t count, const taut_features_options *);

/* ---- Data ---------------------------------------------------------------------------------------------------------- */

typedef struct taut_data taut_data;
typedef enum { TAUT_TRAIN, TAUT_VALID, TAUT_TEST } taut_split; /* only a series has a test split */

/* Data of the kind that the model reads, cut as it was trained: by name (under $TAUT_DATA), path, or NULL for what it was
 * trained on.  The model need not outlive it. */
TAUT_API TAUT_MUST_USE taut_status taut_data_open(taut_data **out, const taut_net *, const char *name);
TAUT_API void taut_data_free(taut_data *);
typedef struct {
    int64_t t, width;      /* of an input; width 0: ids */
    int64_t asked, wanted; /* targets of an example; numbers of each where they are not classes */
    int64_t count[3];      /* examples of each split */
} taut_data_facts;
TAUT_API TAUT_MUST_USE taut_status taut_data_look(const taut_data *, taut_data_facts *out);
/* Example `index` of a split into arrays of the caller's: ids (t) or reals (t, width); targets (asked), classes, -1
 * where nothing is asked; of a series wanted (asked, wanted) instead.  An array that the data do not have is not
 * written.  A pointer may be NULL: not needed. */
typedef struct {
    int32_t *ids;
    double *reals;
    int32_t *targets;
    double *wanted;
} taut_sample;
TAUT_API TAUT_MUST_USE taut_status taut_data_get(const taut_data *, taut_split, int64_t index, const taut_sample *into);

/* ---- Training and evaluating --------------------------------------------------------------------------------------- */

typedef struct {
    int64_t step, steps; /* done, of all */
    double loss, lr, grad_norm, tokens_per_s, seconds;
} taut_step_facts;
typedef struct {
    size_t size;
    const char *kernels;
    const char *const *overrides; /* `count` times "section.key=value" */
    int count;
    int resume;    /* go on from the folder's last checkpoint, bit for bit */
    int overwrite; /* replace a run that is in the folder; without it, such a folder is refused */
    int (*progress)(const taut_step_facts *, void *arg); /* after every step; not 0: save and return */
    void *arg;
} taut_train_options;
typedef struct {
    int64_t steps, tokens, weights; /* done; seen: tokens of texts, images, rows of forecasts; of the model */
    double train_loss;              /* mean of the last 32 steps */
    /* of the saved model, whole validation split; a forecaster has mean squared errors.  NaN of a run that was stopped, which
     * does not wait for it */
    double val_loss, val_acc;
    double val_mae, test_loss, test_mae; /* of a forecaster; NaN for all others, as val_acc is for it */
    double tokens_per_s, seconds;
    int64_t best_step; /* of a run with patience: the step that model.safetensors is of; 0: the last */
    int stopped;       /* by the callback, before the last step */
} taut_result;
/* Trains a recipe (.ini file) into the folder `run`: recipe.ini, log.jsonl, model.safetensors, state.safetensors,
 * summary.json. */
TAUT_API TAUT_MUST_USE taut_status taut_train_recipe(taut_result *out, const char *recipe, const char *run,
                                                     const taut_train_options *);

typedef struct {
    size_t size;
    const char *const *overrides; /* `count` texts "section.key=value" */
    int count;
    const char *run; /* a run that is in this folder, if there is one, must be of this recipe */
} taut_recipe_options;
/* `values` of a recipe (.ini file), defaults included, without training it; NULL: `keys`, all there are, with what they mean. */
TAUT_API TAUT_MUST_USE taut_status taut_recipe_json(char **json, const char *recipe, const taut_recipe_options *);

typedef struct {
    double loss, accuracy; /* means over the targets; of a forecaster the mean squared error, and NaN */
    double mae;            /* of a forecaster; NaN for all others */
    int64_t targets, examples;
} taut_score;
/* On at most `examples` examples spread over the split; 0: on all of it. */
TAUT_API TAUT_MUST_USE taut_status taut_net_score(taut_net *, taut_score *out, const taut_data *, taut_split,
                                                  int64_t examples);

typedef struct {
    size_t size;
    const char *kernels;
    uint64_t seed;     /* of a built-in shape; default 1 */
    const char *data;  /* other data than it was trained on */
    const char *split; /* "training", "validation" (the default) or, of a series, "test" */
    int64_t examples;  /* so many, spread over the split; 0: all of it */
    int64_t slide;     /* of a text: the first so many windows, one at every token */
    int64_t batch;     /* examples at a time; default 16, at most 64 */
    double noise;      /* of a forecaster: each row of an input moves by up to this; how far can a forecast? */
    const char *page;  /* of a forecaster: an HTML page of forecasts, with pictures beside it */
} taut_evaluate_options;
/* How good a stored model is on its data, as JSON: data, split, targets, windows; loss, accuracy, perplexity; of a forecaster mse,
 * mae, one forecast (window, columns), and with noise: rows, moves (proved: no row of a forecast moves further, for inputs
 * as in `about`), found (by search), rounding (how much of `found` may be), contradiction (found beats moves). */
TAUT_API TAUT_MUST_USE taut_status taut_evaluate_file(char **json, const char *model, const taut_evaluate_options *);

typedef struct {
    size_t size;
    const char *data;             /* a table (CSV) whose newest rows are read; default: what the model was trained on */
    double noise;                 /* each row may be off by so much, l2 over its standardised numbers; 0: no band */
    const char *csv;              /* write the forecast as a table to this file, too */
    const char *const *overrides; /* `count` times "data.missing=hold": rules for holes in the table (missing, gaps, */
    int count;                    /* repeats, constant) in the place of those that the model was trained with */
} taut_forecast_options;
/* What a stored forecaster says of the rows behind the newest of a table, in the table's own units, computed in double, as JSON: dates;
 * columns, each with name, values, and with noise low and high: proved, for every table whose rows are off by at most that much from
 * this one's the values are between them ("-inf", "inf": nothing is known); moves, how far that is; data, model (SHA-256), rows_read,
 * last (date that was read), step, repaired (by rules of the recipe), noise, proved, and about or no_constant (why not). */
TAUT_API TAUT_MUST_USE taut_status taut_forecast_file(char **json, const char *model, const taut_forecast_options *);

/* ---- Certificates -------------------------------------------------------------------------------------------------- */

typedef struct taut_cert taut_cert;
/* A change's size: its largest token, or l2 over everything.  TAUT_OWN: that of the target which the model was trained under;
 * without one, flat for images and tokens for all others; of one token in and one out, the smaller of both proofs. */
typedef enum { TAUT_OWN, TAUT_TOKENS, TAUT_FLAT } taut_metric;

typedef struct {
    size_t size;
    taut_metric metric;
    double room;      /* inputs may also be moved by so much, in the metric; default 0.  No radius is above it */
    double rows;      /* of a forecaster: rows of inputs are at most so long, l2; 0: as long as in its data */
    const char *data; /* other data than it was trained on, for `examples` and `rows` */
    int64_t examples; /* certify so many predictions, spread over the validation split; or those below */
    /* own inputs in the place of the validation split: all n of them, full length; ids of a text (embeddings may lie outside
     * the region), images with pixels in [0, 1] */
    const taut_inputs *inputs;
    const int32_t *labels;                   /* their classes (n) */
    int local;                               /* constants around each example, too */
    int (*progress)(double done, void *arg); /* as examples get done; not 0: stop, which is TAUT_BAD_CALL "stopped" */
    void *arg;
    int64_t swaps; /* of a text: which swaps of up to so many tokens (at most 16) leave the answers; 0: not asked */
    int64_t tries; /* swaps tried per example, covered ones and others each; default 64 */
    /* radii are to hold for a runtime whose every logit, at the example moved by less than its radius, is at most so far from
     * that of the stored weights in real arithmetic; 0: for those themselves */
    double tolerance;
    const char *join; /* a folder through which any number of processes that make this same call share the examples */
    /* radii are to hold for what taut itself computes on these kernels ("cpu", "wide", "ref", "cuda", "cuda64"), rounding
     * included, in any batch and with any number of threads; NULL: not asked.  Not together with a tolerance */
    const char *runs_on;
    /* "cuda64": large norms and the examples' logits come from a device, in double, and what it may be wrong by is part of the
     * proof; not together with join.  "ref", "cpu", NULL: all of it by ref, on the host */
    const char *kernels;
} taut_certify_options;
/* Proves a Lipschitz constant of a stored model (a file or a run's folder), from inputs to logits, and the options' examples. */
TAUT_API TAUT_MUST_USE taut_status taut_certify_file(taut_cert **out, const char *model, const taut_certify_options *);
TAUT_API void taut_cert_free(taut_cert *);

typedef struct {
    size_t size;
    const char *const *file; /* `files` of them: pictures, .npy, .npz, folders; or texts: .csv, .tsv, lines */
    int files;
    taut_metric metric;
    double room;      /* as of taut_certify_options, but default 1 */
    int resize;       /* pictures of another size are made the model's */
    const char *text; /* of a .csv or .tsv: the columns that are the text, with commas; default: as in training */
    int (*progress)(double done, void *arg); /* after each input; not 0: stop, which is TAUT_BAD_CALL "stopped" */
    void *arg;
} taut_predict_options;
/* What a stored classifier of images or texts says of inputs without a class, computed in double, as JSON: model (SHA-256); norm,
 * room, lip, about, and where there is none no_constant; classes (names); predictions, each with file, line or index, class,
 * predicted (its number), probability, probabilities (softmax, of which nothing is proved), radius (proved: inputs moved by
 * less have the same class; 0: unknown), verdict ("certified", "unknown", "no answer": a logit is not finite, and there is no
 * class), of a text cut (it is longer than the model reads). */
TAUT_API TAUT_MUST_USE taut_status taut_predict_file(char **json, const char *model, const taut_predict_options *);

typedef struct {
    double lip, body;   /* proved: input to logits, input to the last features; +inf: none */
    double room, reach; /* the region, as in docs/guarantees.md; reach: NaN for images, whose region is no ball */
    double rows;        /* of a forecaster; +inf: rows of any length, or no forecaster */
    double defect;      /* what solvers that stop at a tolerance add to the distance of two outputs */
    double round;       /* how far logits of the ref kernels are from those of real arithmetic */
    int64_t tokens;     /* of an input */
    int64_t examples;   /* that were certified */
    int layers;         /* of the waterfall */
    char sha256[65];    /* of the model's file */
    taut_metric metric; /* tokens or flat */
} taut_cert_facts;
TAUT_API TAUT_MUST_USE taut_status taut_cert_look(const taut_cert *, taut_cert_facts *out);
typedef struct {
    int32_t label, predicted; /* predicted -1: no answer, a logit is NaN or a solver gave up; margin is then NaN */
    double margin, radius;    /* computed; proved, at most the room: moved by less, the prediction stays.  0: unknown */
    double local_lip, local_radius; /* of option `local`; else NaN */
} taut_prediction;
TAUT_API TAUT_MUST_USE taut_status taut_cert_example(const taut_cert *, int64_t index, taut_prediction *out);
/* Of option `swaps`, for an example: a swap puts another token of the vocabulary into one place.  Covered: proved to leave the
 * answer.  Distances are those of the tokens' embeddings, l2, rounded up. */
typedef struct {
    double radius;        /* proved: other embeddings, nearer than this in the metric, leave the answer; 0: unknown */
    int64_t all, covered; /* swaps of one token; those of them that are covered */
    int64_t together;     /* swaps of which any `swaps` at different places are covered at once */
    double nearest;       /* distance of the nearest that is not covered; `place` -1: all are */
    int64_t place;
    int32_t from, to; /* ids */
    int64_t tried;    /* by the search */
    int64_t turned;   /* so many swaps at once were found to change the answer; 0: none */
    int64_t beaten;   /* covered swaps that changed it: contradictions, which should not be */
} taut_swap_facts;
TAUT_API TAUT_MUST_USE taut_status taut_cert_swaps(const taut_cert *, int64_t index, taut_swap_facts *out);
typedef struct {
    const char *path, *rule; /* live as long as the certificate */
    double lip, out;         /* proved: its own constant; no token behind it is longer */
} taut_layer_facts;
TAUT_API TAUT_MUST_USE taut_status taut_cert_layer(const taut_cert *, int index, taut_layer_facts *out);
/* The certificate as docs/certificate.md has it: as text, and as a file for taut_check_certificate. */
TAUT_API TAUT_MUST_USE taut_status taut_cert_json(const taut_cert *, char **json);
TAUT_API TAUT_MUST_USE taut_status taut_cert_save(const taut_cert *, const char *path);
/* The certificate and what follows from it, as JSON: also waterfall, about, no_constant (why there is none), the constant in other
 * units and norms; of examples certified_accuracy at radii up to the room, medians, the largest ratio seen over pairs; `swaps`: per
 * number of them at once the shares that are covered and turned, the nearest that is not covered, contradictions. */
TAUT_API TAUT_MUST_USE taut_status taut_cert_report(const taut_cert *, char **json);

typedef enum { TAUT_CONFIRMED, TAUT_REFUTED, TAUT_CANNOT_SAY } taut_verdict;
typedef struct {
    taut_verdict verdict;
    char why[512]; /* one line, unless confirmed */
    double lip;
    int64_t numbers, examples, certified, unknown; /* confirmed numbers; examples, with a radius, left open */
} taut_check_facts;
/* Confirms a certificate file with the independent checker.  A status other than TAUT_OK: a file cannot be read. */
TAUT_API TAUT_MUST_USE taut_status taut_check_certificate(taut_check_facts *out, const char *cert, const char *model);
/* The same and more as JSON: certificate (its SHA-256), checker and date; holds (true; false and `why`; null and `why`: it
 * cannot say), norm, lip, region, about, counts. */
TAUT_API TAUT_MUST_USE taut_status taut_check_json(char **json, const char *cert, const char *model);

/* ---- Attacks ------------------------------------------------------------------------------------------------------- */

typedef struct taut_attacked taut_attacked;
typedef struct {
    size_t size;
    const char *kernels;
    const char *attacks; /* "pgd,aa-standard"; default "aa-standard" */
    const char *norm;    /* "Linf", "L2", "L1"; default Linf, of a text L2 */
    const char *eps;     /* radii, "2/255,8/255"; default 8/255, 0.5 for L2, 12 for L1; needed for a text */
    int64_t examples; /* so many of the validation split (default 100), as a certificate takes them; or those below */
    const char *data;
    const taut_inputs *inputs; /* own inputs, as in taut_certify_options */
    const int32_t *labels;
    int64_t steps, restarts, targets, queries; /* 0: the attack's own */
    double step_size;                          /* PGD's step over eps */
    int fixed_start;                           /* PGD's first run starts at the clean input */
    uint64_t seed;
    int no_certify;     /* do not hold the results against certificates */
    const char *folder; /* where an input that contradicts a certificate is saved; default: nowhere */
    const char *state;  /* results so far: an interrupted attack goes on from this file */
    int64_t batch;      /* examples attacked and saved together; default 256; changes no result */
    int64_t gallery;    /* the JSON keeps up to so many of the images whose class was changed, for a report */
    int (*progress)(double done, void *arg); /* 0 to 1 for certificates, then for attacks; not 0: stop, as above */
    void *arg;
    /* a folder through which any number of processes that make this same call share the examples, `batch` (default 16) at a
     * time; each of them ends with all results.  Not with a state or a gallery */
    const char *join;
    /* certified is what these kernels compute, which must be those that run (taut_certify_options): then a success inside a radius
     * that double does not repeat contradicts it as well; NULL: certified is the network in real arithmetic */
    const char *runs_on;
} taut_attack_options;
/* Attacks a stored model (a file or a run's folder) and holds what is found against what is certified. */
TAUT_API TAUT_MUST_USE taut_status taut_attack_file(taut_attacked **out, const char *model,
                                                    const taut_attack_options *);
TAUT_API void taut_attacked_free(taut_attacked *);
typedef struct {
    int64_t examples, right; /* tried; those the model gets right */
    int64_t contradictions;  /* successes inside a certified radius: one of the two is wrong */
    int radii, attacks;      /* of the lists that were asked for */
    int certified;           /* were results held against certificates? */
} taut_attack_facts;
TAUT_API TAUT_MUST_USE taut_status taut_attacked_look(const taut_attacked *, taut_attack_facts *out);
typedef struct {
    double eps;
    int64_t standing;  /* right answers that no attack changed */
    int64_t certified; /* right answers of the ref kernels that are proved to stand; -1: nothing was certified */
} taut_attack_radius;
TAUT_API TAUT_MUST_USE taut_status taut_attacked_at(const taut_attacked *, int radius, taut_attack_radius *out);
typedef struct {
    int32_t label, predicted;
    int broken;      /* at this radius, by any attack */
    double distance; /* of the nearest input that broke it, in the attack's norm; +inf: none */
    double radius;   /* certified, l2; 0: none */
} taut_attack_example;
TAUT_API TAUT_MUST_USE taut_status taut_attacked_one(const taut_attacked *, int radius, int64_t index,
                                                     taut_attack_example *out);
TAUT_API TAUT_MUST_USE taut_status taut_attacked_json(const taut_attacked *, char **json);
/* Looks at a saved contradiction again, with the certificate proved anew: JSON with `contradiction`, true or false. */
TAUT_API TAUT_MUST_USE taut_status taut_attack_replay(char **json, const char *model, const char *file);

/* ---- Measuring ----------------------------------------------------------------------------------------------------- */

typedef enum {
    TAUT_MEASURE_LAYERS,   /* attention layers at an input: slope found, slope proved, what papers print */
    TAUT_MEASURE_LENGTHS,  /* slopes of one layer against the length of the input, and the exponent of their growth */
    TAUT_MEASURE_NETWORK,  /* slopes of the whole network at examples, beside its proved constant */
    TAUT_MEASURE_MAPS,     /* whom each token listens to: the weights of every head */
    TAUT_MEASURE_DEVIATION /* how far attention in linear time is from softmax: the truth, and what is proved of it */
} taut_measurement;
typedef struct {
    size_t size;
    taut_measurement what;
    const char *kernels;
    uint64_t seed;        /* of the search, and of a built-in shape; default 1 */
    const char *data;     /* other data than it was trained on */
    int64_t tokens, from; /* of a text: how many (default 32), from which on; of images `from` says which one */
    int one_layer;        /* only `layer`; without it all of them, for TAUT_MEASURE_LENGTHS the middle one */
    int64_t layer;        /* from 0 on */
    const char *map;      /* "bare" (the default), "attention", "branch", "residual", "block": docs/measure.md */
    double ball;          /* TAUT_MEASURE_LAYERS: both sides also for tokens that move by up to this */
    int exact; /* TAUT_MEASURE_LAYERS: also prove each head's norm from its Jacobian, where that is small enough */
    int64_t lengths[3]; /* TAUT_MEASURE_LENGTHS: first, last, step; default 2, 32, 2 */
    int64_t samples;    /* sequences of each length (10), examples of NETWORK (100) and DEVIATION (4) */
    int adversarial;    /* TAUT_MEASURE_LENGTHS: inputs made to be steep for `head` instead of text */
    int64_t head;       /* from 0 on */
    double radius;      /* adversarial: how long tokens may be; default: the steepest for each length */
    int castin;         /* adversarial: the published construction, by an eigenvector */
    const char *method; /* "lanczos" (the default) or "power" */
    int64_t steps;      /* of the search, at most; default 40, of power 500 */
    double tolerance;   /* the relative residual at which it stops; default 1e-4, below 0: never */
    const char *csv;    /* write the numbers as a table to this file, too */
    int (*progress)(double done, void *arg); /* not 0: stop, which is TAUT_BAD_CALL "stopped" */
    void *arg;
} taut_measure_options;
/* Measures a stored model, as JSON; docs/measure.md says what each number is.  `contradiction` is true where something was found
 * above what is proved of it. */
TAUT_API TAUT_MUST_USE taut_status taut_measure_file(char **json, const char *model, const taut_measure_options *);

/* ---- Planning ------------------------------------------------------------------------------------------------------ */

/* A transformer without norm layers and biases, with convex residuals.  Where zero itself makes sense, a negative number stands
 * for it. */
typedef struct {
    size_t size;
    double target;                    /* the Lipschitz constant to stay at or under; needed */
    int64_t depth, width, heads, mlp; /* default 3, 256, 4, 4 width */
    int64_t vocab;                    /* logits; needed for units "l2" */
    const char *units;                /* "rms" (the default) or "l2" */
    const char *attention;            /* scale of the logits: "inv_width" (the default), "inv_head", "inv_sqrt_head" */
    const char *activation;           /* "gelu" (the default), "gelu_tanh", "relu", "silu", "tanh" */
    double out;                       /* factor of the attention's output; default 1 / (3 sqrt heads) */
    double factor;                    /* times the activation; default 1 / 1.1289 */
    double alpha;                     /* residuals (1 - alpha) x + alpha f(x); default 1 / (2 depth) */
    double embed, position;           /* largest RMS of an embedding (0.75; 1 with rope), of a position (0.25) */
    double qk;                        /* caps of W_Q and W_K as a multiple of the others'; default 1 */
    double head, logit;               /* cap of the head, factor of the logits; default 1 and 1 */
    int rope;                         /* rotary positions instead of learned ones */
} taut_plan_options;
/* The caps of matrices under which every such network stays at or under the target, proved, as JSON: caps, cap, lipschitz, ...,
 * recipe (the text of an .ini file that trains one), and the caps of published formulas, which are unsound. */
TAUT_API TAUT_MUST_USE taut_status taut_plan_caps(char **json, const taut_plan_options *);
/* Published caps beside proved ones, as JSON: { table: [{ name, sound, caps, lipschitz }] }. */
TAUT_API TAUT_MUST_USE taut_status taut_plan_table(char **json);

/* ---- Reporting ----------------------------------------------------------------------------------------------------- */

/* One HTML page about the folders of runs (or of sweeps: then all runs inside); with `svg`, each chart also as a file in that folder (NULL: not). */
TAUT_API TAUT_MUST_USE taut_status taut_report_runs(const char *page, const char *title, const char *const *runs,
                                                    int count, const char *svg);
typedef struct {
    size_t size;
    const char *title, *svg;
    int frontier;  /* only the chart of losses against proved constants, one point per run */
    double radius; /* of which the page speaks first; 0: a round one that half of the right answers reach */
} taut_page_options;
/* The same with options; *figures (or NULL) is how many charts there are. */
TAUT_API TAUT_MUST_USE taut_status taut_report_page(int *figures, const char *page, const char *const *runs, int count,
                                                    const taut_page_options *);
/* What a run's folder says of itself, as JSON: finished; summary, as in its summary.json (null: there is none); lip, measure (its norm
 * and units) and about of its certificate.json where that is about its model.safetensors as it is now (lip null: there is
 * none); target, of a run under one: { target, bound, measure, about }, what its summary says of the model as it is now. */
TAUT_API TAUT_MUST_USE taut_status taut_run_json(char **json, const char *run);

#ifdef __cplusplus
}
#endif
#endif
