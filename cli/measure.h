/* What taut measure found, for people (measure_print.c) and as JSON and CSV (measure_json.c). */
#ifndef TAUT_CLI_MEASURE_H
#define TAUT_CLI_MEASURE_H
#include <cjson/cJSON.h>

#include "api/net.h"
#include "cli.h"
#include "measure/fit.h"
#include "measure/layer.h"
#include "measure/scatter.h"

typedef struct {
    const char *model, *source;
    taut_map map;
    double ball;      /* 0: none */
    double tolerance; /* of the search */
} measure_about;

void measure_print_layers(const measure_about *, const taut_layer_measure *, int count);
cJSON *measure_layers_json(const measure_about *, const taut_layer_measure *, int count);
taut_status measure_layers_csv(const char *path, const measure_about *, const taut_layer_measure *, int count);

typedef struct {
    const taut_scatter_point *point;
    int64_t count;
    taut_growth growth;
    int layer;
    bool adversarial;
    double gap; /* adversarial: at radius 1 */
    int64_t head;
} measure_scatter;
void measure_print_scatter(const measure_about *, const measure_scatter *);
cJSON *measure_scatter_json(const measure_about *, const measure_scatter *);
taut_status measure_scatter_csv(const char *path, const measure_about *, const measure_scatter *);

/* measure_network.c: the whole network at many examples */
int measure_network(const cli_args *, taut_net *, const taut_slope_options *);
/* measure_maps.c: whom each token listens to */
int measure_maps(const cli_args *, taut_net *);
/* measure_deviation.c: how far attention in linear time is from softmax */
int measure_deviation(const cli_args *, taut_net *);
#endif
