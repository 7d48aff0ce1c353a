/* The keys of a forecaster.  A recipe that names a series need not give the columns and the time features of its rows. */
#include "model/spec.h"

void taut_spec_read_series(taut_model_spec *s, taut_config *cfg)
{
    s->seq = taut_config_int(cfg, "model.seq", 96, 1, 1 << 20);
    s->label = taut_config_int(cfg, "model.label", s->seq / 2, 0, 1 << 20);
    s->ahead = taut_config_int(cfg, "model.ahead", 24, 1, 1 << 20);
    s->columns = taut_config_int(cfg, "model.columns", 7, 1, 1 << 16);
    s->marks = taut_config_int(cfg, "model.marks", 4, 0, 16);
    s->decoder_depth = taut_config_int(cfg, "model.decoder_depth", 1, 1, 12);
    if (taut_config_has(cfg, "model.distil")) s->distil = taut_config_bool(cfg, "model.distil", false);
    s->context = s->seq;
    s->classes = s->columns; /* all of them are forecast, unless the recipe chooses some */
    if (taut_config_has(cfg, "model.targets"))
        s->classes = taut_config_int(cfg, "model.targets", s->columns, 1, s->columns);
}

int64_t taut_spec_tokens(const taut_model_spec *s, int64_t block)
{
    int64_t tokens = s->context;
    for (int64_t i = 0; s->distil && i < block; i++) tokens = (tokens + 1) / 2;
    return tokens;
}
