/* What taut check says of a certificate that a test holds in its hands, about the model at model_path. */
#ifndef VERDICT_H
#define VERDICT_H
#include "base/json.h"
#include "check/check.h"
#include "temp.h"

static char *model_path, *cert_path;

static inline taut_checked verdict(const cJSON *cert)
{
    taut_checked r;
    char *text = taut_json_text(cert, false);
    temp_put("cert.json", text, strlen(text));
    free(text);
    must(taut_check_files(&r, cert_path, model_path));
    return r;
}
#endif
