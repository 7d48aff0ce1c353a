/* The Lipschitz kind: RMSNorm, rotary positions, convex residual, scaled attention and logits, own head. */
#include "golden/golden.h"

int main(void) { return golden_test("golden_gpt_rope", "tests/golden/gpt_rope.safetensors"); }
