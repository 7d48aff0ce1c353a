/* The program: one file per command.  A command reads arguments, calls the library, prints. */
#ifndef TAUT_CLI_H
#define TAUT_CLI_H
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum { EXIT_DONE = 0, EXIT_BAD = 1, EXIT_CONTRADICTION = 2, EXIT_UNKNOWN = 3 };

typedef struct {
    const char *name, *value; /* "--out", "RUN"; value NULL: a flag */
    const char *help;
} cli_option;

typedef struct cli_args cli_args;
typedef struct {
    const char *name, *operands, *summary, *example;
    int least, most; /* operands */
    const cli_option *options;
    int (*run)(const cli_args *);
} cli_command;

struct cli_args {
    const cli_command *command;
    const char *operand[64];
    int operands;
    const char *name[64], *value[64]; /* options as given */
    int given;
};

extern const cli_command cli_train, cli_eval, cli_sample, cli_info, cli_convert, cli_measure, cli_certify, cli_check,
    cli_plan, cli_paper, cli_bench, cli_report, cli_attack, cli_man, cli_sweep;
extern const cli_command *const cli_commands[]; /* main.c: all of them, in the order of the help */
extern const int cli_command_count;
extern const cli_option cli_common[];      /* args.c: what every command takes */
const char *cli_short(const cli_option *); /* "-o" for "--out", "-h" for "--help"; NULL: it has no short form */

/* args.c: false after one clear line on stderr */
bool cli_parse(cli_args *, const cli_command *, int argc, char **argv);
void cli_help(const cli_command *);
bool cli_flag(const cli_args *, const char *name);
const char *cli_text(const cli_args *, const char *name, const char *def);
/* A number in [lo, hi]; else one clear line and exit. */
int64_t cli_int(const cli_args *, const char *name, int64_t def, int64_t lo, int64_t hi);
double cli_real(const cli_args *, const char *name, double def, double lo, double hi);
const taut_kernels *cli_kernels(const cli_args *); /* --kernels, --threads; exits on a bad name */
const char *cli_table(const cli_args *);           /* the same by name */

void cli_wait_asleep(char **argv); /* wait.c: starts the program again if its threads would spin while they wait */

/* timing.c: monotonic seconds; the p-quantile of x, which is sorted */
double cli_now(void);
double cli_quantile(double *x, int n, double p);
static inline double cli_median(double *x, int n) { return cli_quantile(x, n, 0.5); }

/* print.c */
int cli_fail(const cli_args *); /* the library's last error on stderr; EXIT_BAD */
int cli_refuse(const cli_args *, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_json(cJSON *object);                          /* one object on stdout; takes it over */
char *cli_path(const char *folder, const char *file); /* the file if it is a folder, else itself; free it */
void cli_print_load(const cJSON *report);             /* what became of every tensor of a checkpoint */
void cli_bar(double done, const char *text);          /* a progress bar on stderr, only on a terminal */
void cli_bar_end(void);
#endif
