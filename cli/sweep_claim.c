/* Who has which run of a sweep, for workers on any machines that share its folder.  RUN/claim.N is made by the worker that takes
 * the run, and only if it was not there (O_EXCL): one of many succeeds.  The worker and the processes it starts hold a lock on
 * it (flock), which is gone with the last of them, and the worker writes a number there every few seconds.  A claim is over when
 * it says so; when nobody has its lock, on the machine that made it; on another machine, where the lock may not be seen, when
 * its number has also stood still for --stale seconds of our own clock: no two clocks are compared.  It is then taken by making
 * RUN/claim.N+1, which again one worker can; the highest N has the run, and a worker that slept finds that it has lost it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sweep.h"

enum { HEAD = 18, BEATS = 12 }; /* "held   0000000001 "; numbers written in the time after which a claim is stale */

static void path_of(char path[SWEEP_PATH + 32], const sweep *s, int run, int number)
{
    sweep_folder(s, run, path);
    snprintf(path + strlen(path), 32, "/claim.%d", number);
}

double sweep_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* This machine since it was started, and a name for people. */
static const char *machine(void)
{
    static char text[128];
    char boot[64] = "", host[64] = "";
    FILE *f = *text ? NULL : fopen("/proc/sys/kernel/random/boot_id", "r");
    if (*text) return text;
    if (f && fscanf(f, "%63s", boot) != 1) *boot = '\0';
    if (f) fclose(f);
    if (gethostname(host, sizeof host - 1) || !*host) strcpy(host, "unknown");
    snprintf(text, sizeof text, "%.60s %.60s", *boot ? boot : host, host);
    return text;
}

/* "" where there is none, or nothing is in it yet. */
static void read_claim(int fd, char text[SWEEP_CLAIM])
{
    const ssize_t len = pread(fd, text, SWEEP_CLAIM - 1, 0);
    text[len > 0 ? len : 0] = '\0';
}

/* Watched for long enough, and always the same? */
static bool still(sweep_point *p, const char text[SWEEP_CLAIM], double stale)
{
    if (!p->seen[0] || strcmp(p->seen, text) != 0) {
        snprintf(p->seen, sizeof p->seen, "%s", *text ? text : "-");
        p->since = sweep_now();
    }
    return sweep_now() - p->since >= stale;
}

/* Is the claim in an open file over? */
static bool is_over(const sweep *s, sweep_point *p, int fd)
{
    char text[SWEEP_CLAIM];
    read_claim(fd, text);
    const bool over = strncmp(text, "free ", 5) == 0 || strncmp(text, "failed ", 7) == 0;
    const bool here = strlen(text) > HEAD && strncmp(text + HEAD, machine(), strlen(machine())) == 0;
    if (over) return true;
    if (flock(fd, LOCK_SH | LOCK_NB) != 0) return false;
    flock(fd, LOCK_UN);
    return here || still(p, *text ? text : "-", s->stale);
}

/* Failed since this worker began, in the clock of the file system: it need not be tried again. */
static bool failed_now(const sweep *s, int fd)
{
    char text[SWEEP_CLAIM];
    struct stat st;
    read_claim(fd, text);
    if (strncmp(text, "failed ", 7) != 0 || fstat(fd, &st) != 0) return false;
    return st.st_mtim.tv_sec > s->began.tv_sec ||
           (st.st_mtim.tv_sec == s->began.tv_sec && st.st_mtim.tv_nsec >= s->began.tv_nsec);
}

sweep_claim sweep_claim_look(const sweep *s, int run, sweep_point *p)
{
    char path[SWEEP_PATH + 32];
    int last = -1, next;
    for (p->number = 0;; p->number++) {
        path_of(path, s, run, p->number + 1);
        next = open(path, O_RDWR | O_CLOEXEC);
        if (next < 0) break;
        if (last >= 0) close(last);
        last = next;
    }
    const bool known = errno == ENOENT;
    const bool failed = last >= 0 && failed_now(s, last), over = last < 0 || is_over(s, p, last);
    if (last >= 0) close(last);
    return !known ? SWEEP_HELD : failed ? SWEEP_FAILED : over ? SWEEP_FREE : SWEEP_HELD;
}

static void say(const sweep_point *p, const char *state, bool whole)
{
    char text[SWEEP_CLAIM];
    snprintf(text, sizeof text, "%-6s %010d %s %ld\n", state, p->beat, machine(), (long)getpid());
    const size_t len = whole ? strlen(text) : HEAD;
    (void)!pwrite(p->fd, text, len, 0); /* where it cannot be written, the lock still holds, or others find it silent */
}

int sweep_claim_take(const sweep *s, int run, sweep_point *p)
{
    char path[SWEEP_PATH + 32];
    sweep_folder(s, run, path);
    if (cli_make_folder(path)) return -1;
    if (sweep_claim_look(s, run, p) != SWEEP_FREE) return 0;
    path_of(path, s, run, ++p->number);
    p->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (p->fd < 0) return errno == EEXIST ? 0 : -1;
    /* Until it is locked and says whose it is, others see an empty claim, which they watch; they hold it for a moment. */
    while (flock(p->fd, LOCK_EX) != 0 && errno == EINTR) {}
    p->beat = 1;
    p->next_beat = sweep_now() + s->stale / BEATS;
    say(p, "held", true);
    return 1;
}

bool sweep_claim_beat(const sweep *s, int run, sweep_point *p)
{
    char path[SWEEP_PATH + 32];
    if (sweep_now() < p->next_beat) return true;
    p->next_beat = sweep_now() + s->stale / BEATS;
    p->beat++;
    say(p, "held", false);
    path_of(path, s, run, p->number + 1);
    return access(path, F_OK) != 0;
}

void sweep_claim_end(const sweep *s, int run, sweep_point *p, const char *state)
{
    char path[SWEEP_PATH + 32];
    if (p->fd < 0) return;
    if (state) say(p, state, false);
    for (int n = p->number; !state && n > 0; n--) { /* the highest first: there is never a gap */
        path_of(path, s, run, n);
        unlink(path);
    }
    flock(p->fd, LOCK_UN);
    close(p->fd);
    p->fd = -1;
}

/* Does a lock keep others out here?  Also the time of the file system when this worker began. */
static const char *try_lock(sweep *s, const char *path)
{
    struct stat st;
    const char *why = NULL;
    const int one = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666), two = open(path, O_RDWR | O_CLOEXEC);
    const int third = one < 0 ? -1 : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (one < 0 || two < 0 || fstat(one, &st) != 0)
        why = strerror(errno);
    else if (third >= 0)
        why = "a file can be made twice";
    else if (flock(one, LOCK_EX | LOCK_NB) != 0)
        why = strerror(errno);
    else if (flock(two, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        why = "a lock keeps nobody out";
    else
        s->began = st.st_mtim;
    if (third >= 0) close(third);
    if (two >= 0) close(two);
    if (one >= 0) close(one);
    if (one >= 0) unlink(path);
    return why;
}

int sweep_claim_open(sweep *s)
{
    char path[SWEEP_PATH];
    s->stale = cli_real(s->args, "--stale", 60, 1, 1e6);
    const char *missing = cli_make_folder(s->out);
    if (missing) return cli_refuse(s->args, "%s: cannot make the folder: %s", s->out, missing);
    snprintf(path, sizeof path, "%s/.%s.%ld", s->out, strchr(machine(), ' ') + 1, (long)getpid());
    const char *why = try_lock(s, path);
    if (why)
        return cli_refuse(s->args,
                          "%s: files cannot be locked there (%s), so that two workers could do one run: "
                          "another --out",
                          s->out, why);
    return EXIT_DONE;
}
