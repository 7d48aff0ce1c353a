/* The few questions that tokenizers ask about a code point, answered by libunistring's Unicode tables. */
#ifndef TAUT_DATA_UNICODE_H
#define TAUT_DATA_UNICODE_H
#include <stdbool.h>
#include <stdint.h>
#include <unicase.h>
#include <unictype.h>

static inline bool code_is_letter(uint32_t c) { return uc_is_general_category_withtable(c, UC_CATEGORY_MASK_L); }
static inline bool code_is_number(uint32_t c) { return uc_is_general_category_withtable(c, UC_CATEGORY_MASK_N); }
static inline bool code_is_mark(uint32_t c) { return uc_is_general_category_withtable(c, UC_CATEGORY_MASK_Mn); }
static inline bool code_is_punctuation(uint32_t c) { return uc_is_general_category_withtable(c, UC_CATEGORY_MASK_P); }
static inline bool code_is_other(uint32_t c) { return uc_is_general_category_withtable(c, UC_CATEGORY_MASK_C); }
static inline bool code_is_space(uint32_t c) { return uc_is_property_white_space(c); }
#endif
