/* SPDX-License-Identifier: Apache-2.0 */
#include "output/progress_line.h"

#include <stdio.h>
#include <string.h>

#include "output/terminal.h"
#include "output/text.h"

enum { PIECE_BYTES = 160, MOST_CELLS = 40 };

/* In the order of the line. */
typedef enum Piece { STAGE, BAR, PERCENT, COUNTS, RATE, BYTE_RATE, LEFT, BAD, N_PIECES } Piece;

typedef struct Pieces {
    char text[N_PIECES][PIECE_BYTES]; /* "" = none */
    size_t columns[N_PIECES];
} Pieces;

/* ---- the pieces ------------------------------------------------------------------------- */

static void fill_counts(char text[PIECE_BYTES], const CliProgressState *s)
{
    char a[CLI_NUMBER_TEXT], b[CLI_NUMBER_TEXT];
    if (s->total_seconds > 0)
        snprintf(text, PIECE_BYTES, "%s of %s", cli_text_time(s->seconds, a),
                 cli_text_time(s->total_seconds, b));
    else if (s->total_bytes > 0)
        snprintf(text, PIECE_BYTES, "%s of %s", cli_text_size((double)s->done_bytes, a),
                 cli_text_size((double)s->total_bytes, b));
    else if (s->total > 0)
        snprintf(text, PIECE_BYTES, "%s of %s", cli_text_number((int64_t)s->done, a),
                 cli_text_number((int64_t)s->total, b));
    else if (s->done > 0)
        snprintf(text, PIECE_BYTES, "%s", cli_text_number((int64_t)s->done, a));
}

static void fill_rates(Pieces *p, const CliProgressState *s, const CliRates *r)
{
    char number[CLI_NUMBER_TEXT];
    double per_second = s->unit && s->done > 0 ? r->per_second : -1;
    if (per_second >= 10)
        snprintf(p->text[RATE], PIECE_BYTES, "%s %s/s",
                 cli_text_number((int64_t)(per_second + 0.5), number), s->unit);
    else if (per_second >= 0)
        snprintf(p->text[RATE], PIECE_BYTES, "%.1f %s/s", per_second, s->unit);
    if (r->bytes_per_second > 0 || (s->total_bytes > 0 && r->bytes_per_second >= 0))
        snprintf(p->text[s->unit ? BYTE_RATE : RATE], PIECE_BYTES, "%.1f MB/s",
                 r->bytes_per_second / 1e6);
}

static void fill_left(char text[PIECE_BYTES], double left)
{
    char number[CLI_NUMBER_TEXT];
    if (left >= 100)
        snprintf(text, PIECE_BYTES, "%s left", cli_text_time(left, number));
    else if (left >= 0)
        snprintf(text, PIECE_BYTES, "%.0f s left", left);
}

/* All but the bar, which only a terminal shows. */
static void fill_pieces(Pieces *p, const CliProgressState *s, const CliRates *r)
{
    char number[CLI_NUMBER_TEXT];
    double share = cli_progress_share(s);
    *p = (Pieces){.columns = {0}};
    snprintf(p->text[STAGE], PIECE_BYTES, "%s", s->stage);
    if (share >= 0)
        snprintf(p->text[PERCENT], PIECE_BYTES, "%3d %%", (int)(100 * share));
    fill_counts(p->text[COUNTS], s);
    fill_rates(p, s, r);
    fill_left(p->text[LEFT], cli_rates_seconds_left(r));
    if (s->bad > 0)
        snprintf(p->text[BAD], PIECE_BYTES, "%s bad", cli_text_number((int64_t)s->bad, number));
    for (Piece i = 0; i < N_PIECES; i++)
        p->columns[i] = strlen(p->text[i]);
}

/* ---- the bar -------------------------------------------------------------------------------- */

static size_t cells_for(size_t columns)
{
    return columns >= 110 ? MOST_CELLS : columns >= 75 ? 14 : 10;
}

/* With UTF-8, blocks of eighths of a cell. */
static void fill_bar(Pieces *p, double share, const CliLineStyle *style)
{
    static const char *const eighths[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    size_t cells = cells_for(style->columns), done = (size_t)(share * (double)cells * 8);
    char *to = p->text[BAR];
    if (share < 0)
        return;
    *to++ = '[';
    for (size_t i = 0; i < cells; i++) {
        size_t part = done > 8 * i ? done - 8 * i : 0;
        const char *cell = style->utf8 ? eighths[part < 8 ? part : 8] : part >= 8 ? "#" : " ";
        to = stpcpy(to, cell);
    }
    stpcpy(to, "]");
    p->columns[BAR] = cells + 2;
}

/* ---- the line --------------------------------------------------------------------------- */

/* Removes what does not fit beside more important pieces. Returns the columns used. */
static size_t fit(Pieces *p, size_t columns)
{
    static const Piece important_first[] = {PERCENT, LEFT, STAGE,  BAD,
                                            RATE,    BAR,  COUNTS, BYTE_RATE};
    size_t used = 0;
    for (size_t i = 0; i < N_PIECES; i++) {
        Piece piece = important_first[i];
        size_t with = used + (used > 0 ? 2 : 0) + p->columns[piece];
        if (p->columns[piece] > 0 && with <= columns)
            used = with;
        else
            p->text[piece][0] = '\0';
    }
    return used;
}

static const char *colour_of(Piece piece)
{
    return piece == BAR ? CLI_COLOUR_GREEN : piece == BAD ? CLI_COLOUR_YELLOW : NULL;
}

static void join(const Pieces *p, const char *between, int colours, char line[CLI_LINE_BYTES])
{
    FILE *to = fmemopen(line, CLI_LINE_BYTES, "w");
    int n = 0;
    line[0] = '\0';
    for (Piece i = 0; to && i < N_PIECES; i++) {
        const char *colour = colours ? colour_of(i) : NULL;
        if (p->text[i][0])
            fprintf(to, "%s%s%s%s", n++ > 0 ? between : "", colour ? colour : "", p->text[i],
                    colour ? CLI_COLOUR_NONE : "");
    }
    if (to)
        fclose(to);
}

size_t cli_progress_line(const CliProgressState *state, const CliRates *rates,
                         const CliLineStyle *style, char line[CLI_LINE_BYTES])
{
    Pieces p;
    fill_pieces(&p, state, rates);
    fill_bar(&p, cli_progress_share(state), style);
    size_t used = fit(&p, style->columns);
    join(&p, "  ", style->colour, line);
    return used;
}

void cli_progress_sentence(const CliProgressState *state, const CliRates *rates,
                           char line[CLI_LINE_BYTES])
{
    char pieces[CLI_LINE_BYTES];
    Pieces p;
    fill_pieces(&p, state, rates);
    p.text[STAGE][0] = '\0';
    join(&p, ", ", 0, pieces);
    snprintf(line, CLI_LINE_BYTES, "%s%s%.*s", state->stage, pieces[0] ? ": " : "",
             CLI_LINE_BYTES - 64, pieces + strspn(pieces, " "));
}
