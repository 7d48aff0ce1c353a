/* CSV files of series, plain and compressed, under every rule for empty cells and gaps: whatever is in them, a series that holds
 * finite numbers or one line that says what is wrong; names that a recipe can hold; and windows only where there are rows for
 * them. */
#include "fuzz.h"

#include <math.h>
#include <zlib.h>

#include "data/names.h"
#include "data/series.h"

static void fuzz_begin(void)
{
    static const char text[] =
        "date,a,b\n2016-07-01 00:00:00,1,2.5\n2016-07-01 01:00:00,-3e2,4\n2016-07-01 02:00:00,5,0.6\r\n"
        "2016-07-01 03:00:00,2,1\n2016-07-02,1,7\n2016-07-02 01:00,9,-7\n2016-07-02 02:00,8,-9\n";
    static uint8_t packed[512];
    fuzz_seed_text(text);
    fuzz_seed_text("date,x\n1/1/2010 0:00,10\n1/1/2010 0:10,11\n12/31/2010 23:50,12\n");
    fuzz_seed_text("date,x\n2016-07-01 00:00:00,1e308\n2016-07-01 01:00:00,-1e308\n2016-07-01 02:00:00,1e308\n");
    fuzz_seed_text("\xEF\xBB\xBF\"when\";\"a;b\";\"\"\"c\"\"\"\r\n01.07.2016 00:00;1,5;2\r\n01.07.2016 01:00;;3,25\r\n"
                   "01.07.2016 03:00;2;4\r\n01.07.2016 04:00;-1e-3;5\r\n");
    fuzz_seed_text(
        "n\twhen\tx\n1\t2016-07-01T00:00:00+01:00\t1\n2\t2016-07-01T01:00Z\t \n3\t2016-07-01 03:00:00.0+0100\t2\n");
    fuzz_seed_text("date,a,a\n2016-01-31,1,2\n2016-02-29,,3\n2016-04-30,4,\n2016-05-31,5,7\n");
    z_stream z = { .next_in = (uint8_t *)(uintptr_t)text,
                   .avail_in = sizeof text - 1,
                   .next_out = packed,
                   .avail_out = sizeof packed };
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, 0) != Z_OK || deflate(&z, Z_FINISH) != Z_STREAM_END) abort();
    fuzz_seed(packed, z.total_out);
    deflateEnd(&z);
}

static void windows(taut_series *s)
{
    taut_source *source = NULL;
    double room[8 * 64];
    const int64_t wide = s->cols + s->marks;
    if (wide > 64 || taut_source_series(&source, s, 2, 1, 1)) {
        if (wide > 64) taut_series_free(s);
        return;
    }
    for (int split = 0; split < 3; split++) {
        const int64_t count = taut_source_count(source, (taut_split)split);
        for (int64_t i = 0; i<count; i += count> 1 ? count - 1 : 1)
            source->ops->get(source, (taut_slot){ .reals = room, .wanted = room + 4 * wide }, (taut_split)split, i);
    }
    taut_source_free(source);
}

/* What is printed is read again as the same names. */
static void names(const taut_series *s)
{
    char *list = NULL;
    taut_names back;
    if (taut_names_print(&list, s->name, s->cols)) return;
    CHECK(taut_names_read(&back, list, "names") == TAUT_OK && back.count == s->cols, list);
    for (int64_t c = 0; c < back.count; c++) CHECK(strcmp(back.name[c], s->name[c]) == 0, list);
    taut_names_free(&back);
    free(list);
}

static void fuzz_one(const uint8_t *data, size_t len)
{
    taut_series *s = NULL;
    const uint8_t rules = len ? data[len / 2] : 0; /* the bytes choose them */
    const taut_series_spec spec = { .source = fuzz_file(data, len),
                                    .full = len % 2,
                                    .missing = (taut_missing)(rules % 3),
                                    .gaps = (taut_gaps)(rules / 3 % 3),
                                    .repeats = (taut_repeats)(rules / 72 % 3),
                                    .keep_constant = rules / 9 % 2,
                                    .columns = rules / 18 % 4 == 3 ? "x,a" : NULL };
    const taut_status status = taut_series_open(&s, &spec);
    CHECK(!status == (s != NULL), "a series or an error");
    if (status) {
        CHECK(*taut_last_error() && !strchr(taut_last_error(), '\n'), "one line");
        return;
    }
    for (int64_t i = 0; i < s->rows * s->cols; i++) CHECK(isfinite(s->value[i]), "finite");
    names(s);
    windows(s);
}
