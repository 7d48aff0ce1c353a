/* A model as a target.  Images: the input is the image, the box [0, 1].  Text: the input is the embeddings of a sequence,
 * tokens by features, without a box; the logits are those of the last token.
 *
 * The network always runs on the same number of examples, missing ones filled with copies: how kernels cut their work depends on
 * sizes, so a fixed size makes an example's bits its own, whoever is beside it. */
#ifndef TAUT_ATTACK_NETWORK_H
#define TAUT_ATTACK_NETWORK_H
#include "attack/target.h"
#include "model/pass.h"

enum { TAUT_NETWORK_BATCH = 16, TAUT_NETWORK_BATCH_DEVICE = 64 };

/* The model stays the caller's; taut_network_close releases the rest. */
taut_status taut_network_open(taut_target *, taut_model *) TAUT_MUST_USE;
void taut_network_close(taut_target *);

/* x (dim) = what the root reads for this input: the reals themselves, or the embeddings of its ids. */
void taut_network_input(const taut_target *, double *x, taut_input);
#endif
