/* The style sheet of pages and of pictures that stand alone, where the rules for pages match nothing. */
#ifndef TAUT_REPORT_STYLE_H
#define TAUT_REPORT_STYLE_H
extern const char taut_report_style[];
#endif
