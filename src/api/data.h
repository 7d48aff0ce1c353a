/* Data as the public interface hands them out. */
#ifndef TAUT_API_DATA_H
#define TAUT_API_DATA_H
#include "data/source.h"

struct taut_data {
    taut_source *source;
};
#endif
