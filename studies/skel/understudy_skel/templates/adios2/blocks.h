/* Blocks of {{ application | c_comment }} that follow no formula: rank, where it begins (unless it is local), shape. */
#include <cstdint>
{% for layout in tables %}

static const uint64_t blocks_{{ layout.number }}[] = {
{% for row in layout.rows %}
    {{ row }},
{% endfor %}
};
{% endfor %}
{% if choices %}

/* Numbers of layouts by the step. */
{% for choice in choices %}
static const int {{ choice.name }}[] = {{ literal("{") }}{{ choice.numbers }}};
{% endfor %}
{% endif %}
