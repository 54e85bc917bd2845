"""The score: predicted counters beside logged ones, and the choice among candidates."""
