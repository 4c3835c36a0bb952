package history

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/karpenter-go/karpenter/internal/testing/golden"
)

// hostile adds to each text within a value characters that clear a terminal, and a line.
func hostile(value any) any {
	switch value := value.(type) {
	case string:
		return value + "\x1b[2J\u009b1m\x7f\nnode forged"
	case []any:
		for i := range value {
			value[i] = hostile(value[i])
		}
	case map[string]any:
		for key := range value {
			if !slices.Contains([]string{"time", "ts", "level", "message", "logger", "controller"}, key) {
				value[key] = hostile(value[key])
			}
		}
	}
	return value
}

// TestControlCharacters checks that no character of a line moves the cursor of a terminal or begins a line, whatever key it
// is in.
func TestControlCharacters(t *testing.T) {
	golden.Each(t, func(t *testing.T, f *golden.File) {
		input := string(f.Section("log"))
		if input == "" {
			input = file(t, life)
		}
		var lines strings.Builder
		for line := range strings.Lines(input) {
			var keys map[string]any
			if json.Unmarshal([]byte(line), &keys) != nil { // the console's form, whose texts have no escapes
				before, after, _ := strings.Cut(line, "\t{")
				lines.WriteString(before + "\x1b[2J\t{" + strings.ReplaceAll(after, `",`, `\u001b[2J\n",`))
				continue
			}
			text, err := json.Marshal(hostile(keys))
			if err != nil {
				t.Fatal(err)
			}
			lines.WriteString(string(text) + "\n")
		}
		l := read(t, lines.String())
		if l.Events < 2 {
			t.Errorf("%d events, want those of the log", l.Events)
		}
		v := l.View(Query{})
		text, err := json.Marshal([]any{v.Nodes(), v.Commands()})
		if err != nil {
			t.Fatal(err)
		}
		var answers any
		if err := json.Unmarshal(text, &answers); err != nil {
			t.Fatal(err)
		}
		for _, text := range texts(answers) {
			if strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("%q in the answers", text)
			}
		}
		for line := range strings.Lines(all(t, l, 0) + v.Hours(time.Hour).Text(0)) {
			if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) || strings.HasPrefix(line, "node forged") {
				t.Errorf("%q is printed", line)
			}
		}
	})
}

// texts returns all texts within a value.
func texts(value any) []string {
	var list []string
	switch value := value.(type) {
	case string:
		list = append(list, value)
	case []any:
		for _, one := range value {
			list = append(list, texts(one)...)
		}
	case map[string]any:
		for _, one := range value {
			list = append(list, texts(one)...)
		}
	}
	return list
}
