/* taut: train, measure and certify Lipschitz-bounded transformers.
 *
 * The whole public interface.  Handles are opaque; every call that can fail because the world failed
 * returns a taut_status and leaves one line in taut_last_error().  The library never prints and
 * never exits. */
#ifndef TAUT_H
#define TAUT_H
#ifdef __cplusplus
extern "C" {
#endif

#define TAUT_VERSION  "0.1.0"
#define TAUT_MUST_USE __attribute__((warn_unused_result))

typedef enum {
    TAUT_OK,
    TAUT_NO_MEMORY,
    TAUT_BAD_FILE,
    TAUT_BAD_CONFIG,
    TAUT_BAD_DATA,
    TAUT_NOT_FINITE, /* training met a NaN or an infinity */
    TAUT_DEVICE
} taut_status;

/* What went wrong last in this thread: one line, no newline, never NULL. */
const char *taut_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
