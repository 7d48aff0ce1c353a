/* GPT-2's kind: LayerNorm before the branches, learned positions, biases, tied head. */
#include "golden/golden.h"

int main(void) { return golden_test("golden_gpt", "tests/golden/gpt.safetensors"); }
