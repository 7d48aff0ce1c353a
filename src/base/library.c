#include "base/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static bool within(uint64_t at, uint64_t len, uint64_t size) { return at <= size && len <= size - at; }

/* Do its headers speak of more than the file has?  Where a copy was cut off, the loader maps what they say, and the program
 * dies of the first page that is not there.  What is no library of this machine's is left to the loader, which says so. */
static bool cut(FILE *f)
{
    ElfW(Ehdr) h;
    ElfW(Phdr) p;
    if (fread(&h, sizeof h, 1, f) != 1 || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
        h.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) || fseeko(f, 0, SEEK_END))
        return false;
    const uint64_t size = (uint64_t)ftello(f);
    bool whole = within(h.e_shoff, (uint64_t)h.e_shnum * h.e_shentsize, size);
    for (unsigned i = 0; whole && i < h.e_phnum; i++)
        whole = fseeko(f, (off_t)(h.e_phoff + (uint64_t)i * h.e_phentsize), SEEK_SET) == 0 &&
                fread(&p, sizeof p, 1, f) == 1 && within(p.p_offset, p.p_filesz, size);
    return !whole;
}

/* Where the loader looks for this object, is the first library of that name cut off?  (Libraries that
 * the loader's cache alone knows are not looked at: nobody may ask for its folders.) */
static bool cut_off(char path[PATH_MAX], const char *library)
{
    static const char here;
    Dl_info about;
    Dl_serinfo room, *paths;
    void *self;
    FILE *f = NULL;
    if (!dladdr1(&here, &about, &self, RTLD_DL_LINKMAP) || dlinfo(self, RTLD_DI_SERINFOSIZE, &room)) return false;
    if (!(paths = taut_malloc(room.dls_size))) return false;
    *paths = room;
    const unsigned count = dlinfo(self, RTLD_DI_SERINFO, paths) ? 0 : paths->dls_cnt;
    for (unsigned i = 0; !f && i < count; i++)
        if (snprintf(path, PATH_MAX, "%s/%s", paths->dls_serpath[i].dls_name, library) < PATH_MAX)
            f = fopen(path, "rb");
    const bool found = f && cut(f);
    if (f) fclose(f);
    free(paths);
    return found;
}

bool taut_library_function(void *function, const char *library, const char *symbol, bool shared, const char **why)
{
    static _Thread_local char line[PATH_MAX + 64];
    char path[PATH_MAX];
    const bool bad = cut_off(path, library);
    void *open = bad ? NULL : dlopen(library, RTLD_NOW | (shared ? RTLD_GLOBAL : RTLD_LOCAL));
    void *found = open ? dlsym(open, symbol) : NULL;
    if (bad) snprintf(line, sizeof line, "%s is cut off: it is shorter than its own headers say", path);
    *why = found ? NULL : bad ? line : dlerror();
    memcpy(function, &found, sizeof found); /* ISO C has no cast from an object to a function */
    return found != NULL;
}
