/* A folder for a test's files, gone at its end, and files written without the code under test. */
#ifndef TEMP_H
#define TEMP_H
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char temp_dir[1024];

static int temp_remove(const char *path, const struct stat *info, int flag, struct FTW *ftw)
{
    (void)info, (void)flag, (void)ftw;
    return remove(path);
}
static void temp_end(void) { nftw(temp_dir, temp_remove, 16, FTW_DEPTH | FTW_PHYS); }
static inline void temp_begin(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(temp_dir, sizeof temp_dir, "%s/taut-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(temp_dir)) abort();
    atexit(temp_end);
}

/* Good until the eighth call after this one. */
static inline const char *temp_path(const char *name)
{
    static char paths[8][2048];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", temp_dir, name);
    return path;
}
static inline const char *temp_put(const char *name, const void *data, size_t len)
{
    const char *path = temp_path(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, len, f) != len || fclose(f) != 0) abort();
    return path;
}
static inline const char *temp_text(const char *name, const char *text) { return temp_put(name, text, strlen(text)); }
/* The file's bytes and a NUL; NULL if it is not there.  The caller frees. */
static inline char *temp_get(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *data = malloc(1 << 24);
    *len = fread(data, 1, (1 << 24) - 1, f);
    data[*len] = 0;
    fclose(f);
    return data;
}
static inline int temp_is(const char *path, const char *text)
{
    size_t len = 0;
    char *data = temp_get(path, &len);
    const int same = data && len == strlen(text) && memcmp(data, text, len) == 0;
    free(data);
    return same;
}
/* How many files the folder has: a test that leaves a temporary behind is seen. */
static inline int temp_count(void)
{
    int count = 0;
    DIR *dir = opendir(temp_dir);
    for (struct dirent *e; dir && (e = readdir(dir));) count += e->d_name[0] != '.';
    if (dir) closedir(dir);
    return count;
}
#endif
