/* Files: read whole, written so that a crash or a full disk never leaves a broken one. */
#ifndef TAUT_BASE_FILE_H
#define TAUT_BASE_FILE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* The whole file and a closing NUL that len does not count; the caller frees. */
taut_status taut_file_read(char **text, size_t *len, const char *path) TAUT_MUST_USE;
taut_status taut_file_write(const char *path, const void *data, size_t len) TAUT_MUST_USE;
taut_status taut_dir_make(const char *path) TAUT_MUST_USE; /* with its parents; fine if it is there */
bool taut_file_exists(const char *path);                   /* of any kind: a folder exists too */

/* Makes a folder this process's own until it is released or the process ends, however it ends; fails where another has it.
 * Nothing is written.  A file system that knows no locks lets everybody in.  *lock is then for release. */
taut_status taut_dir_lock(int *lock, const char *path) TAUT_MUST_USE;
void taut_dir_release(int lock); /* -1 is fine */

/* Writes to a temporary sibling; commit makes it durable and renames it over path in one step, so a reader
 * sees the old file or the new one, never half.  After a failed call the temporary is gone, the old file
 * is untouched, and more calls only fail again.  A begun writer ends with commit or abort; abort after a
 * failure or a commit does nothing.  A symbolic link is followed; only a regular file is replaced. */
typedef struct taut_writer {
    char *path, *temp;
    unsigned char *buffer;
    size_t used;
    int fd; /* -1: closed or failed */
} taut_writer;

taut_status taut_writer_begin(taut_writer *w, const char *path) TAUT_MUST_USE;
taut_status taut_writer_put(taut_writer *w, const void *data, size_t len) TAUT_MUST_USE;
taut_status taut_writer_commit(taut_writer *w) TAUT_MUST_USE;
void taut_writer_abort(taut_writer *w);
/* Removes the temporaries in a folder that writers left there when their process was killed. */
void taut_writer_sweep(const char *folder);
#endif
