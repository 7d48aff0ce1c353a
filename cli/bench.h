/* One function a figure: measures and describes, NULL with a last error when it could not. */
#ifndef TAUT_CLI_BENCH_H
#define TAUT_CLI_BENCH_H
#include <cjson/cJSON.h>

cJSON *bench_train(void);
cJSON *bench_attention(void);
cJSON *bench_certify(void);

double bench_now(void); /* monotonic seconds */
#endif
