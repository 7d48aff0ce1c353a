/* The program: one file per command.  A command reads arguments, calls the library, prints. */
#ifndef TAUT_CLI_H
#define TAUT_CLI_H
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "taut.h"

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

extern const cli_command cli_train, cli_recipe, cli_eval, cli_sample, cli_embed, cli_info, cli_convert, cli_measure,
    cli_certify, cli_check, cli_plan, cli_paper, cli_bench, cli_report, cli_attack, cli_man, cli_sweep, cli_forecast,
    cli_predict;
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
/* --kernels by name, which can be had, and --threads is set; exits on a name that is none.  cli_look: the same for a command that
 * computes nothing with them, so that it opens no device and needs none.  Every command asks one of the two. */
const char *cli_table(const cli_args *);
void cli_look(const cli_args *);
uint64_t cli_seed(const cli_args *); /* --seed, or 1 */

void cli_wait_asleep(char **argv); /* wait.c: starts the program again if its threads would spin while they wait */

/* print.c */
int cli_json(cJSON *object);                 /* one object on stdout, every digit of its numbers; takes it over */
void cli_print_load(const cJSON *report);    /* what became of every tensor of a checkpoint */
void cli_bar(double done, const char *text); /* a progress bar on stderr, only on a terminal */
void cli_bar_end(void);
int cli_show(double done, void *text); /* the same, as the library calls it */

/* voice.c: of processes that were started together */
typedef struct {
    int rank, count;
    bool agreed; /* the last failure is one that all of them know */
} cli_group;
cli_group cli_group_here(void);
/* "taut COMMAND: ..." on stderr, by the first; by another one with its number, where the first has nothing to say. */
void cli_say(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_fail(const cli_args *); /* the library's last error on stderr; EXIT_BAD */
int cli_refuse(const cli_args *, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool cli_hush(void); /* their results are one: true on all but the first, which print none from here on */
bool cli_is_mute(void);

/* answer.c: JSON that the library answered, taken over and parsed, and with --json printed as it is.  word: "" if there is none;
 * number: NaN if there is none, and the word "inf" is one. */
cJSON *cli_answer(const cli_args *, char *json);
const char *cli_word(const cJSON *, const char *key);
double cli_number(const cJSON *, const char *key);
const char *cli_up(char dst[32], const cJSON *, const char *key);   /* six digits, rounded up */
const char *cli_down(char dst[32], const cJSON *, const char *key); /* and down */

/* complete.c: completion for a shell, on stdout */
void cli_complete_bash(void);
void cli_complete_zsh(void);
void cli_complete_fish(void);

/* recipe.c: prints a heading where the section of a key is not `last`, which it becomes */
void cli_section(const char *key, char last[64], const char *format);

/* stop.c: from watch to leave a signal is noted and ends nothing, unless it is the second one; asked: its number, or 0, and
 * where the library may look for it. */
void cli_stop_watch(void);
void cli_stop_leave(void);
int cli_stop_asked(void);
const volatile int *cli_stop_flag(void);

/* files.c */
char *cli_path(const char *folder, const char *file);   /* the file if it is a folder, else itself; free it */
bool cli_same_file(const char *model, const char *out); /* would `out` take the model's place? */
const char *cli_make_folder(const char *path);          /* with its parents; why not, NULL: it is there */
void cli_cell(FILE *, const char *text);                /* a cell of a CSV, in quotes */
/* What `print` prints as a file, the whole or none: it is written beside its place and moved there. */
int cli_write(const cli_args *, const char *path, void (*print)(FILE *, const void *), const void *what);
#endif
