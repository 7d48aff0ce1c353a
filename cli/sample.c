/* Draws text from a GPT. */
#include <stdio.h>

#include "cli.h"

static int run(const cli_args *a)
{
    const double temperature = cli_real(a, "--temperature", 0.8, 0, 100);
    const taut_continue_options o = { .size = sizeof o,
                                      .prompt = cli_text(a, "--prompt", NULL),
                                      .length = cli_int(a, "--length", 200, 1, 10000000),
                                      .temperature = temperature,
                                      .likeliest = temperature == 0,
                                      .top_k = cli_int(a, "--top-k", 0, 0, 1 << 30),
                                      .seed = cli_seed(a) };
    const taut_open_options how = { .size = sizeof how, .kernels = cli_table(a), .seed = cli_seed(a) };
    taut_net *net = NULL;
    char *text = NULL, *json = NULL;
    size_t len = 0;
    taut_status s = taut_net_open(&net, a->operand[0], &how);
    if (!s) s = taut_net_continue(net, &text, &len, &json, &o);
    taut_net_free(net);
    if (s) return cli_fail(a);
    if (cli_flag(a, "--json"))
        puts(json);
    else {
        fwrite(text, 1, len, stdout);
        putchar('\n');
    }
    taut_string_free(text);
    taut_string_free(json);
    return EXIT_DONE;
}

static const cli_option options[] = {
    { "--prompt", "TEXT", "what it goes on from (default: a new line, or what the text has instead)" },
    { "--length", "N", "tokens to write" },
    { "--temperature", "T", "0: always the likeliest token (default 0.8)" },
    { "--top-k", "K", "choose among the K likeliest tokens only" },
    { NULL, NULL, NULL },
};

const cli_command cli_sample = {
    "sample", "MODEL", "writes text with a GPT", "taut sample runs/tiny --length 300 --temperature 0.7", 1, 1,
    options,  run,
};
