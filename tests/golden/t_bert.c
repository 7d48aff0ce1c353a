/* BERT's kind: attention both ways, LayerNorm after the branches, masked-token head with targets left out. */
#include "golden/golden.h"

int main(void) { return golden_test("golden_bert", "tests/golden/bert.safetensors"); }
