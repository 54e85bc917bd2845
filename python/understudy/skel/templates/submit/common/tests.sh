
set -eu
cd "{{ start }}"
target={{ target | shell }}
mkdir -p "$target"
# One test after another, each in a directory of its own under the target; the program removes what it wrote.
{% for test in tests %}
{{ launcher }} build/{{ test.program }} \
    -o "$target/{{ test.name }}-{{ id }}" -r "{{ test.name }}-{{ id }}.json" \
    --config {{ config | shell }} --method {{ test.method }}{{ " --parameters " ~ (test.parameters | shell) if test.parameters }} \
    --steps {{ test.steps }} --repetitions {{ test.iterations }}
{% endfor %}
