/* The keys of models that read images.  A recipe that names a known set of images need not give the first six. */
#include "base/number.h"
#include "model/spec.h"

static taut_status read_channels(double *out, taut_config *cfg, const char *key, const char *def, int64_t channels)
{
    const char *text = taut_config_text(cfg, key, def);
    const int count = taut_number_list(out, 4, text);
    for (int i = 1; count == 1 && i < channels; i++) out[i] = out[0];
    if (count == 1 || count == channels) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG, "%s = %s wants one number, or one for each of %lld channels", key, text,
                     (long long)channels);
}

static taut_status read_image(taut_model_spec *s, taut_config *cfg)
{
    taut_pixels_spec *i = &s->image;
    i->height = taut_config_int(cfg, "model.image_height", 28, 1, 1 << 12);
    i->width = taut_config_int(cfg, "model.image_width", i->height, 1, 1 << 12);
    i->channels = taut_config_int(cfg, "model.image_channels", 1, 1, 4);
    s->classes = taut_config_int(cfg, "model.classes", 10, 2, 1 << 20);
    taut_status status = read_channels(i->mean, cfg, "model.pixel_mean", "0", i->channels);
    if (!status) status = read_channels(i->std, cfg, "model.pixel_std", "1", i->channels);
    for (int64_t c = 0; !status && c < i->channels; c++)
        if (!(i->std[c] >= 1e-6 && i->std[c] <= 1e6) || !(i->mean[c] >= -1e6 && i->mean[c] <= 1e6))
            status = taut_fail(TAUT_BAD_CONFIG,
                               "model.pixel_std wants numbers from 1e-6 to 1e6, pixel_mean smaller ones");
    return status;
}

taut_status taut_spec_read_hidden(taut_model_spec *s, taut_config *cfg, const char *key)
{
    double width[TAUT_LAYERS];
    const char *text = taut_config_text(cfg, key, "256 256");
    const int count = taut_number_list(width, TAUT_LAYERS, text);
    const bool pairs = s->maxmin && !s->head_bends;
    bool good = count >= 1;
    for (int i = 0; i < count && good; i++) {
        good = width[i] >= 1 && width[i] <= 1 << 20;
        s->hidden[i] = good ? (int64_t)width[i] : 0;
        good = good && width[i] == (double)s->hidden[i] && (!pairs || s->hidden[i] % 2 == 0);
    }
    if (!good)
        return taut_fail(TAUT_BAD_CONFIG, "%s = %s wants 1 to %d widths%s, as in 256 256", key, text, TAUT_LAYERS,
                         pairs ? " that are even (maxmin pairs features)" : "");
    s->layers = count;
    return TAUT_OK;
}

taut_status taut_spec_read_mlp(taut_model_spec *s, taut_config *cfg)
{
    const taut_status image = read_image(s, cfg);
    s->bias = taut_config_bool(cfg, "model.bias", true);
    s->head_bias = taut_config_bool(cfg, "model.head_bias", s->bias);
    taut_spec_read_activation(s, cfg);
    taut_spec_read_init(s, cfg);
    s->norm = TAUT_NORM_NONE;
    s->context = 1;
    const taut_status hidden = taut_spec_read_hidden(s, cfg, "model.hidden");
    s->depth = s->layers;
    s->width = hidden ? 1 : s->hidden[s->layers - 1];
    return image ? image : hidden;
}

taut_status taut_spec_read_patches(taut_model_spec *s, taut_config *cfg)
{
    const taut_status image = read_image(s, cfg);
    taut_pixels_spec *i = &s->image;
    i->patch = taut_config_int(cfg, "model.patch", 4, 1, 1 << 12);
    const int pool = taut_config_choice(cfg, "model.pool", "class|mean|concat|l2", 0);
    s->pool_mean = pool == 1;
    s->pool_concat = pool == 2;
    s->pool_l2 = pool == 3;
    s->class_token = pool == 0;
    if (taut_config_has(cfg, "model.class_token"))
        s->class_token = taut_config_bool(cfg, "model.class_token", s->class_token);
    if (taut_config_has(cfg, "model.distilled")) s->distilled = taut_config_bool(cfg, "model.distilled", false);
    s->context = (i->height / i->patch) * (i->width / i->patch) + s->class_token + s->distilled;
    if (!image && (i->height % i->patch || i->width % i->patch))
        return taut_fail(TAUT_BAD_CONFIG, "model.patch = %lld does not divide an image of %lld x %lld",
                         (long long)i->patch, (long long)i->height, (long long)i->width);
    if (!image && !s->class_token && pool == 0)
        return taut_fail(TAUT_BAD_CONFIG, "model.pool = class reads a token that model.class_token = false leaves out");
    if (!image && s->distilled && pool != 0)
        return taut_fail(TAUT_BAD_CONFIG, "model.distilled = true is a second token behind model.pool = class");
    return image;
}
