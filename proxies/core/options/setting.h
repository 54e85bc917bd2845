/*
 * Options of methods, -m <method>.<option>=<value>: found in the method's own rows and checked
 * there, so that neither this file nor the player's options know any of them.
 */
#ifndef UND_SETTING_H
#define UND_SETTING_H

#include "interfaces/method.h"
#include "text/error.h"

#include <stdio.h>

/* Do all texts name an option of a method, with a value that it takes? False with the error message. */
bool und_settings_check(const char *const *texts, int count, struct und_error *error);

/* Does the text name an option of the method? */
bool und_setting_is_of(const char *text, const struct und_method *method);

/* The values for the method in the order of its rows: defaults where checked texts say nothing, else
 * the last that does. */
void und_settings_read(const struct und_method *method, const char *const *texts, int count,
                       int64_t values[UND_MAX_SETTINGS]);

/* Sets an option of the method to a value that it takes, where no text says otherwise. Has it that value then?
 * False where the method has no such option. */
bool und_settings_prefer(const struct und_method *method, const char *name, const char *value, const char *const *texts,
                         int count, int64_t values[UND_MAX_SETTINGS]);

/* One line for each option of the method. */
void und_settings_list(const struct und_method *method, FILE *stream);

#endif
