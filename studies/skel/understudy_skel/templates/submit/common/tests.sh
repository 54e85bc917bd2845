
set -eu
cd "{{ start }}"
target={{ target | shell }}
mkdir -p "$target"
# The tests run in turn, each in its own directory under the target; the program removes what it wrote.
{% for test in tests %}
{% if launcher %}{{ launcher }}{% else %}{{ starter }} -n {{ cores }}{% endif %} build/{{ test.program }} \
    -o "$target/{{ test.name }}-{{ id }}" -r "{{ test.name }}-{{ id }}.json" \
    --config {{ config | shell }} --method {{ test.method }}{% if test.parameters %} --parameters {{ test.parameters | shell }}{% endif %} \
    --steps {{ test.steps }} --repetitions {{ test.iterations }}
{% endfor %}
