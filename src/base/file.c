/* Whole files in, atomic files out: temporary sibling, fsync, rename, fsync of the folder. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum { BUFFER_SIZE = 1 << 16 };

bool taut_file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

/* The size is only a hint: files of the system say 0, and a file may grow while it is read. */
static taut_status read_all(char **text, size_t *len, const char *path, int fd, size_t hint)
{
    size_t room = hint + 2, used = 0;
    char *buffer = taut_malloc(room);
    if (!buffer) return taut_no_memory(path);
    for (;;) {
        if (used + 1 == room) {
            char *more = room > SIZE_MAX / 2 ? NULL : taut_realloc(buffer, 2 * room);
            if (!more) {
                free(buffer);
                return taut_no_memory(path);
            }
            buffer = more;
            room *= 2;
        }
        const ssize_t got = read(fd, buffer + used, room - used - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            free(buffer);
            return taut_fail(TAUT_BAD_FILE, "%s: %s", path, strerror(errno));
        }
        if (got == 0) break;
        used += (size_t)got;
    }
    buffer[used] = 0;
    *text = buffer;
    *len = used;
    return TAUT_OK;
}

taut_status taut_file_read(char **text, size_t *len, const char *path)
{
    *text = NULL;
    *len = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return taut_fail(TAUT_BAD_FILE, "%s: %s", path, strerror(errno));
    struct stat info;
    taut_status status;
    if (fstat(fd, &info) != 0)
        status = taut_fail(TAUT_BAD_FILE, "%s: %s", path, strerror(errno));
    else if (S_ISDIR(info.st_mode))
        status = taut_fail(TAUT_BAD_FILE, "%s: is a folder, not a file", path);
    else if (!S_ISREG(info.st_mode))
        status = taut_fail(TAUT_BAD_FILE, "%s: not a regular file",
                           path); /* a device may have no end, a pipe no start */
    else
        status = read_all(text, len, path, fd, (size_t)info.st_size);
    close(fd);
    return status;
}

taut_status taut_file_write(const char *path, const void *data, size_t len)
{
    taut_writer w;
    taut_status status = taut_writer_begin(&w, path);
    if (!status) status = taut_writer_put(&w, data, len);
    return status ? status : taut_writer_commit(&w);
}

taut_status taut_dir_make(const char *path)
{
    char *part = taut_strdup(path);
    if (!part) return taut_no_memory(path);
    taut_status status = TAUT_OK;
    struct stat info;
    for (char *p = part; *p && !status;) {
        p += strspn(p, "/");
        p += strcspn(p, "/");
        const char saved = *p;
        *p = 0;
        /* a parent may exist and still refuse mkdir (read-only, no permission), so look before complaining */
        if (mkdir(part, 0777) != 0) {
            const int why = errno;
            if (stat(part, &info) != 0)
                status = taut_fail(TAUT_BAD_FILE, "%s: cannot make the folder: %s", part, strerror(why));
            else if (!S_ISDIR(info.st_mode))
                status = taut_fail(TAUT_BAD_FILE, "%s: is there already and is no folder", part);
        }
        *p = saved;
    }
    free(part);
    return status;
}

taut_status taut_dir_lock(int *lock, const char *path)
{
    *lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0) return taut_fail(TAUT_BAD_FILE, "%s: cannot open the folder: %s", path, strerror(errno));
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return TAUT_OK;
    taut_dir_release(*lock);
    *lock = -1;
    return taut_fail(TAUT_BAD_FILE, "%s: another process is working in this folder", path);
}

void taut_dir_release(int lock)
{
    if (lock >= 0) close(lock);
}

static void writer_release(taut_writer *w)
{
    free(w->path);
    free(w->temp);
    free(w->buffer);
    *w = (taut_writer){ .fd = -1 };
}

void taut_writer_abort(taut_writer *w)
{
    if (w->fd >= 0) close(w->fd);
    if (w->fd >= 0) unlink(w->temp);
    writer_release(w);
}

static taut_status writer_fail(taut_writer *w, int why)
{
    const taut_status status = taut_fail(TAUT_BAD_FILE, "%s: %s%s", w->path, strerror(why),
                                         taut_file_exists(w->path) ? " (the old file is kept)" : "");
    taut_writer_abort(w);
    return status;
}

/* mkstemp would make the file private whatever the umask says, so the name is ours. */
static int open_temp(taut_writer *w, size_t size)
{
    for (int i = 0; i < 10000; i++) {
        snprintf(w->temp, size, "%s.tmp-%ld-%d", w->path, (long)getpid(), i);
        const int fd = open(w->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

/* Named as by open_temp? */
static bool is_temp(const char *name)
{
    const char *tail = strstr(name, ".tmp-");
    int end = 0;
    return tail && sscanf(tail, ".tmp-%*d-%*d%n", &end) == 0 && end > 0 && tail[end] == 0;
}

void taut_writer_sweep(const char *folder)
{
    char path[PATH_MAX];
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        const int len = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (is_temp(e->d_name) && len < (int)sizeof path) unlink(path);
    }
    if (dir) closedir(dir);
}

taut_status taut_writer_begin(taut_writer *w, const char *path)
{
    *w = (taut_writer){ .fd = -1 };
    char real[PATH_MAX];
    struct stat info;
    const bool there = stat(path, &info) == 0;
    /* renaming over a device such as /dev/null would replace the device */
    if (there && !S_ISREG(info.st_mode))
        return taut_fail(TAUT_BAD_FILE, "%s: %s", path,
                         S_ISDIR(info.st_mode) ? "is a folder, not a file" : "is not a regular file");
    const bool link = there && readlink(path, real, sizeof real) >= 0 && realpath(path, real);
    w->path = taut_strdup(link ? real : path);
    w->buffer = taut_malloc(BUFFER_SIZE);
    const size_t size = w->path ? strlen(w->path) + 48 : 0;
    w->temp = w->path ? taut_malloc(size) : NULL;
    if (!w->path || !w->buffer || !w->temp) {
        writer_release(w);
        return taut_no_memory(path);
    }
    w->fd = open_temp(w, size);
    if (w->fd < 0) return writer_fail(w, errno);
    if (there && fchmod(w->fd, info.st_mode & 07777) != 0) return writer_fail(w, errno);
    return TAUT_OK;
}

static taut_status write_all(taut_writer *w, const unsigned char *data, size_t len)
{
    while (len > 0) {
        const ssize_t done = write(w->fd, data, len);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return writer_fail(w, errno);
        data += done;
        len -= (size_t)done;
    }
    return TAUT_OK;
}

static taut_status writer_flush(taut_writer *w)
{
    const size_t used = w->used;
    w->used = 0;
    return write_all(w, w->buffer, used);
}

taut_status taut_writer_put(taut_writer *w, const void *data, size_t len)
{
    if (w->fd < 0) return TAUT_BAD_FILE; /* it failed before; the reason still stands in the last error */
    if (len > BUFFER_SIZE - w->used) {
        const taut_status status = writer_flush(w);
        if (status) return status;
    }
    if (len > BUFFER_SIZE) return write_all(w, data, len);
    if (len > 0) memcpy(w->buffer + w->used, data, len);
    w->used += len;
    return TAUT_OK;
}

/* Best effort: some file systems cannot sync a folder, and the file itself is whole by now. */
static void sync_folder(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = 0;
    const int fd = open(slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

taut_status taut_writer_commit(taut_writer *w)
{
    if (w->fd < 0) return TAUT_BAD_FILE;
    const taut_status status = writer_flush(w);
    if (status) return status;
    if (fsync(w->fd) != 0 || rename(w->temp, w->path) != 0) return writer_fail(w, errno);
    close(w->fd); /* after fsync it has nothing left to report */
    sync_folder(w->path);
    writer_release(w);
    return TAUT_OK;
}
