#include "bench/peer.h"

#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Whether that Python runs and has PyTorch, looked up without loading it. */
static bool has_torch(const char *python)
{
    const char *const ask[] = { python, "-c",
                                "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)",
                                NULL };
    pid_t pid;
    int state = 1;
    if (posix_spawnp(&pid, python, NULL, NULL, (char *const *)ask, environ) == 0) waitpid(pid, &state, 0);
    return state == 0;
}

bool bench_peer_start(bench_peer *p, const char *script, const char *const *args)
{
    int down[2], up[2];
    char line[64] = "";
    const char *python = getenv("TAUT_PYTHON") ? getenv("TAUT_PYTHON") : "python3";
    const char *all[9] = { python, script }; /* its own path first: by that it finds its environment */
    for (int i = 0; i < 6 && args[i]; i++) all[2 + i] = args[i];
    *p = (bench_peer){ 0, NULL, NULL };
    const char *lacks = access(script, R_OK) ? script : has_torch(python) ? NULL : "a Python with PyTorch";
    if (lacks) fprintf(stderr, "taut bench: %s is not here, so PyTorch's figures are left out\n", lacks);
    if (lacks || pipe(down) || pipe(up)) return false;
    p->pid = fork();
    if (p->pid == 0) {
        dup2(down[0], 0), dup2(up[1], 1);
        close(down[1]), close(up[0]);
        execvp(python, (char *const *)all);
        _exit(127);
    }
    close(down[0]), close(up[1]);
    p->to = fdopen(down[1], "w"), p->from = fdopen(up[0], "r");
    return p->pid > 0 && fgets(line, sizeof line, p->from) && strncmp(line, "ready", 5) == 0;
}

double bench_peer_ask(bench_peer *p, const char *line)
{
    double seconds = NAN;
    fprintf(p->to, "%s\n", line);
    fflush(p->to);
    return fscanf(p->from, "%lf", &seconds) == 1 ? seconds : NAN;
}

void bench_peer_stop(bench_peer *p)
{
    if (p->pid <= 0) return;
    fclose(p->to), fclose(p->from);
    waitpid(p->pid, NULL, 0);
}
