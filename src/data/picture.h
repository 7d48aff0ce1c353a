/* One picture in a file's bytes: PNG or JPEG, grey or colour, any size. */
#ifndef TAUT_DATA_PICTURE_H
#define TAUT_DATA_PICTURE_H
#include "data/images.h"

enum { TAUT_PICTURE_SIDE = 1 << 14 }; /* pixels at most, in each direction: what is larger is refused unread */

/* What the first bytes say: its size, and 1 channel (grey) or 3 (colour).  name: for messages. */
taut_status taut_picture_frame(taut_frame *out, const uint8_t *bytes, size_t len, const char *name) TAUT_MUST_USE;
/* Its pixels, in the size that taut_picture_frame says and with 1 or 3 channels, as asked.  What is transparent is black. */
taut_status taut_picture_decode(uint8_t *pixels, taut_frame, const uint8_t *bytes, size_t len,
                                const char *name) TAUT_MUST_USE;
/* Each pixel of `to` is the mean of `from` over the pixel's own part of the picture. */
void taut_picture_resize(uint8_t *to, taut_frame to_frame, const uint8_t *from, taut_frame from_frame);
#endif
