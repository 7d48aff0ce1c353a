/* What a constant is about, in words: numbers that are assumed are rounded down, the defect up, and nothing is left out. */
#include "base/about.h"

#include "harness.h"

static void reads(taut_about about, const char *wanted)
{
    char text[TAUT_ABOUT_ROOM];
    CHECK(strcmp(taut_about_text(text, &about), wanted) == 0, text);
}

int main(void)
{
    test_begin();
    taut_about a = { .reads = TAUT_ABOUT_TOKENS, .tokens = 16, .reach = 5.000000005 };
    reads(a, "for 16 tokens, each an embedding of the model, or anything within 5 of the origin");
    a.room = 0.33696496;
    reads(
        a,
        "for 16 tokens, each an embedding of the model moved by at most 0.336964, or anything within 5 of the origin");
    a = (taut_about){ .reads = TAUT_ABOUT_PIXELS, .tokens = 1, .reach = 1e12 };
    reads(a, "for images whose pixels are in [0, 1]");
    a.room = 1.9999999, a.defect = 0.0100000001;
    reads(a, "for images whose pixels are in [0, 1], moved by at most 1.99999 (l2); of the exact network: proximal "
             "steps that "
             "stop at their tolerance add up to 0.0100001 to the distance of two outputs");
    a = (taut_about){ .reads = TAUT_ABOUT_ROWS, .rows = INFINITY, .room = 1 };
    reads(a, "for windows of any rows");
    a.rows = 3.1415926, a.room = 0.010000001;
    reads(a, "for windows whose rows (values and time features, standardised) are at most 3.14159 long, each moved by "
             "at most "
             "0.01");
    a.rows = a.room = 0x1.fffffffffffffp1023, a.defect = 1e300;
    reads(
        a,
        "for windows whose rows (values and time features, standardised) are at most 1.79769e+308 long, each moved by "
        "at "
        "most 1.79769e+308; of the exact network: proximal steps that stop at their tolerance add up to 1.00001e+300 "
        "to the "
        "distance of two outputs");
    return test_end("about", "texts, images, series");
}
