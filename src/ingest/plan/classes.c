/* SPDX-License-Identifier: Apache-2.0 */
/* What number each label gets. Names are numbered in their sorted order; labels that are all
 * integers (and not names of folders) are those numbers, which a file beside a list may name.
 * Another pack's classes, when given, decide instead. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ingest/plan/plan_impl.h"
#include "ingest/source/list.h"

#define WHERE "ingest/classes"

typedef struct Class {
    const char *name;
    uint32_t number;
} Class;

static int by_name(const void *a, const void *b)
{
    const Class *p = a, *q = b;
    int order = strcmp(p->name, q->name);
    return order ? order : (p->number > q->number) - (p->number < q->number);
}

/* The names with their numbers, sorted by name. NULL when out of memory. */
static Class *sorted(const char *const *names, uint32_t n)
{
    Class *list = pen__alloc_array(n, sizeof *list);
    if (!list)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        list[i] = (Class){names[i], i};
    if (n)
        qsort(list, n, sizeof *list, by_name);
    return list;
}

static int64_t find(const Class *list, uint32_t n, const char *name)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(list[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && strcmp(list[low].name, name) == 0 ? (int64_t)list[low].number : -1;
}

/* Where the first sample with this label comes from. */
static void place_of(const PenInputs *in, uint32_t label, char *buf, size_t cap)
{
    PenInputWalk walk;
    PenInput input;
    int r = pen__inputs_start(in, "check", &walk, NULL);
    do {
        if (r == PEN_OK)
            r = pen__inputs_next(&walk, &input, NULL);
    } while (r == PEN_OK && input.label != label);
    *buf = 0;
    if (r == PEN_OK)
        pen__input_name(in, &input, buf, cap);
}

/* A tar's sample may have no label while others have one: a number is stored for every sample. */
static int check_all_labelled(const PenInputs *in, PenError *reterr)
{
    if (!in->n_unlabelled)
        return PEN_OK;
    char name[256];
    place_of(in, PEN_NO_LABEL, name, sizeof name);
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%s: expected a label because other samples have one, found none", name);
}

static bool same_classes(const PenPackInfo *a, const PenPackInfo *b)
{
    if (a->n_classes != b->n_classes || (a->class_field < 0) != (b->class_field < 0))
        return false;
    for (uint32_t i = 0; i < a->n_classes; i++)
        if (strcmp(a->classes[i], b->classes[i]) != 0)
            return false;
    return true;
}

/* Which pack's classes count; NULL for none. */
static int choose_table(const PenPlanRequest *request, int32_t label_field, const PenPackInfo **ret,
                        PenError *reterr)
{
    const PenPackInfo *base = request->base, *from = request->classes_from;
    if (from && from->class_field < 0)
        return pen__fail(
            reterr, PEN_E_INVALID, WHERE, "%s: expected a pack with classes, found one without",
            request->settings->classes_from ? request->settings->classes_from : "classes");
    if (base && from && !same_classes(base, from))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "expected the same classes in the pack to append to and in "
                         "--classes-from, found %" PRIu32 " and %" PRIu32
                         " that differ; leave --classes-from out",
                         base->n_classes, from->n_classes);
    if (base && base->class_field >= 0 && base->class_field != label_field)
        return pen__fail(
            reterr, PEN_E_INVALID, WHERE,
            "expected the pack's classes to belong to the field label, found the field %s",
            base->fields[base->class_field].name);
    *ret = base && base->class_field >= 0 ? base : from;
    return PEN_OK;
}

/* The label as the integer it is; always false for folders, whose names are names. */
static bool as_integer(const PenInputs *in, uint32_t label, int64_t *ret)
{
    return in->kind != PEN_ROOT_FOLDER && pen__text_i64(in->labels.names[label], ret);
}

/* The name by which the label is found in another pack's classes. */
static const char *name_of(const PenInputs *in, uint32_t label)
{
    int64_t v;
    bool named = as_integer(in, label, &v) && v >= 0 && v < in->classes.n;
    return named ? in->classes.names[v] : in->labels.names[label];
}

static int fail_unknown(const PenInputs *in, const PenPlanRequest *request,
                        const PenPackInfo *table, uint32_t label, PenError *reterr)
{
    char name[256];
    place_of(in, label, name, sizeof name);
    return pen__fail(reterr, request->base ? PEN_E_INVALID : PEN_E_NOT_FOUND, WHERE,
                     "class %.100s of %.200s: expected one of the %" PRIu32
                     " classes of the pack %s, found a new one",
                     name_of(in, label), name, table->n_classes,
                     request->base ? "to append to" : "of --classes-from");
}

/* A number that is the name of another number's class: only a file beside the list can tell. */
static int fail_ambiguous(const PenInputs *in, uint32_t label, int64_t named, PenError *reterr)
{
    char name[256];
    place_of(in, label, name, sizeof name);
    bool listed = in->kind == PEN_ROOT_LIST && in->n_lists;
    char *file = listed ? pen__list_classes_path(in->lists[0].path) : NULL;
    if (listed && !file)
        return pen__fail_memory(reterr, WHERE, "list of classes");
    int r = pen__fail(reterr, PEN_E_INVALID, WHERE,
                      "label %.60s of %.200s: ambiguous: it is both a class number and the name of "
                      "a class; the class named %.60s has the number %" PRId64 "; %s%.200s%s",
                      in->labels.names[label], name, in->labels.names[label], named,
                      listed ? "write the name of each number into " : "", listed ? file : "",
                      listed ? " (of a list that 'penstock extract' wrote, copy the file "
                               "samples.classes.csv to that name)"
                             : "pass a list with a file LIST.classes.csv next to it instead");
    pen__free(file);
    return r;
}

/* May the label be the number of one of the table's classes? With a file of classes it has a name.
 */
static bool is_number(const PenInputs *in, uint32_t label, const PenPackInfo *table)
{
    int64_t v;
    return !in->classes.from && as_integer(in, label, &v) && v >= 0 && v < table->n_classes;
}

static bool are_numbers(const PenInputs *in, const PenPackInfo *table)
{
    uint32_t i = 0;
    while (i < in->labels.n && is_number(in, i, table))
        i++;
    return i == in->labels.n;
}

/* As what they may be: names of the table's classes, or numbers. */
static int number_by_table(const PenInputs *in, const PenPlanRequest *request,
                           const PenPackInfo *table, int64_t *numbers, PenError *reterr)
{
    Class *list = sorted(table->classes, table->n_classes);
    if (!list)
        return pen__fail_memory(reterr, WHERE, "list of classes");
    bool by_numbers = are_numbers(in, table);
    int64_t unknown = -1; /* best one that is neither */
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < in->labels.n; i++) {
        int64_t named = find(list, table->n_classes, name_of(in, i));
        numbers[i] = named;
        if (by_numbers)
            as_integer(in, i, &numbers[i]);
        else if (named < 0 && (unknown < 0 || is_number(in, (uint32_t)unknown, table)))
            unknown = i;
        if (named >= 0 && named != numbers[i])
            r = fail_ambiguous(in, i, named, reterr);
    }
    pen__free(list);
    return unknown < 0 ? r : fail_unknown(in, request, table, (uint32_t)unknown, reterr);
}

/* Numbers and names: a typing mistake would give every class another number. */
static int fail_mixed(const PenInputs *in, uint32_t label, bool is_integer, PenError *reterr)
{
    char place[256];
    place_of(in, label, place, sizeof place);
    bool listed = in->kind == PEN_ROOT_LIST;
    return pen__fail(
        reterr, PEN_E_INVALID, WHERE,
        "%s: expected a label that is %s, as \"%.60s\" before it, found \"%.60s\"; write all "
        "labels as integers, or all as names%s",
        *in->label_at ? in->label_at : place, is_integer ? "a name" : "an integer",
        in->labels.names[0], in->labels.names[label],
        listed ? " (integers get names from a file LIST.classes.csv: see 'penstock help pack')"
               : "");
}

/* 1 when the labels are integers, 0 when they are names. */
static int number_by_value(const PenInputs *in, int64_t *numbers, PenError *reterr)
{
    bool first = as_integer(in, 0, &numbers[0]);
    for (uint32_t i = 1; i < in->labels.n; i++)
        if (as_integer(in, i, &numbers[i]) != first)
            return fail_mixed(in, i, !first, reterr);
    return first;
}

/* Every number has a name in the file beside the list. */
static int check_range(const PenInputs *in, PenError *reterr)
{
    const PenLabelAt *bad = *in->lowest.at && in->lowest.value < 0                  ? &in->lowest
                            : *in->highest.at && in->highest.value >= in->classes.n ? &in->highest
                                                                                    : NULL;
    if (!in->classes.from || !bad)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "%s: expected a label from 0 to %" PRId64 " because %.200s names %" PRIu32
                     " classes, found %" PRId64 "; fix the label or add the class to that file",
                     bad->at, (int64_t)in->classes.n - 1, in->classes.from, in->classes.n,
                     bad->value);
}

/* The names are those of the file beside the list. */
static int number_by_file(const PenInputs *in, PenPlanSchema *shape, PenError *reterr)
{
    for (uint32_t i = 0; i < in->labels.n; i++) {
        if (as_integer(in, i, &shape->numbers[i]))
            continue;
        char place[256];
        place_of(in, i, place, sizeof place);
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: expected an integer as label because %.200s names the classes, found "
                         "\"%.60s\"; write the number of the class, or remove that file",
                         place, in->classes.from, in->labels.names[i]);
    }
    shape->classes = pen__alloc_array(in->classes.n, sizeof *shape->classes);
    if (!shape->classes)
        return pen__fail_memory(reterr, WHERE, "list of classes");
    for (uint32_t i = 0; i < in->classes.n; i++)
        shape->classes[i] = in->classes.names[i];
    shape->n_classes = in->classes.n;
    return PEN_OK;
}

static int number_by_order(const PenInputs *in, PenPlanSchema *shape, PenError *reterr)
{
    uint32_t n = in->labels.n;
    Class *list = sorted((const char *const *)in->labels.names, n);
    shape->classes = pen__alloc_array(n, sizeof *shape->classes);
    if (!list || !shape->classes) {
        pen__free(list);
        return pen__fail_memory(reterr, WHERE, "list of classes");
    }
    for (uint32_t i = 0; i < n; i++) {
        shape->classes[i] = list[i].name;
        shape->numbers[list[i].number] = i;
    }
    shape->n_classes = n;
    pen__free(list);
    return PEN_OK;
}

static int adopt(const PenPackInfo *table, PenPlanSchema *shape, PenError *reterr)
{
    shape->classes = pen__alloc_array(table->n_classes, sizeof *shape->classes);
    if (!shape->classes)
        return pen__fail_memory(reterr, WHERE, "list of classes");
    for (uint32_t i = 0; i < table->n_classes; i++)
        shape->classes[i] = table->classes[i];
    shape->n_classes = table->n_classes;
    shape->class_field = shape->label_field;
    return PEN_OK;
}

int pen__plan_schema_labels(const PenInputs *in, const PenPlanRequest *request,
                            PenPlanSchema *shape, PenError *reterr)
{
    const PenPackInfo *table = NULL;
    int r = choose_table(request, shape->label_field, &table, reterr);
    if (r < 0)
        return r;
    if (!in->has_label)
        return request->classes_from
                   ? pen__fail(reterr, PEN_E_INVALID, WHERE,
                               "expected sources with labels because --classes-from is given, "
                               "found none; leave --classes-from out")
                   : PEN_OK;
    r = check_all_labelled(in, reterr);
    if (r == PEN_OK)
        r = check_range(in, reterr);
    if (r < 0)
        return r;
    shape->numbers = pen__alloc_array(in->labels.n, sizeof *shape->numbers);
    if (!shape->numbers)
        return pen__fail_memory(reterr, WHERE, "list of classes");
    if (table) {
        r = number_by_table(in, request, table, shape->numbers, reterr);
        return r < 0 ? r : adopt(table, shape, reterr);
    }
    r = in->classes.from ? 0 : number_by_value(in, shape->numbers, reterr);
    if (r != PEN_OK)
        return r < 0 ? r : PEN_OK;
    r = in->classes.from ? number_by_file(in, shape, reterr) : number_by_order(in, shape, reterr);
    if (r < 0)
        return r;
    if (request->base)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "expected class numbers because the pack to append to has no class names, "
                         "found the class %.100s",
                         shape->n_classes ? shape->classes[0] : "");
    shape->class_field = shape->label_field;
    return PEN_OK;
}
