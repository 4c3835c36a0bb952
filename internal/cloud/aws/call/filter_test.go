package call

import "testing"

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		want           bool
	}{
		{"sandbox", "sandbox", true}, {"sandbox", "Sandbox", false}, {"sandbox", "sandbox-2", false}, {"", "", true}, {"", "a", false},
		{"*", "", true}, {"*", "anything", true}, {"sand*", "sandbox", true}, {"*box", "sandbox", true},
		{"s*d*x", "sandbox", true}, {"s*y", "sandbox", false},
		{"sandbo?", "sandbox", true}, {"?", "", false}, {"????", "ab", false}, {"a*?", "a", false}, {"a*?", "ab", true},
		{`a\*`, "a*", true}, {`a\*`, "ab", false}, {`a\?b`, "a?b", true}, {`a\\b`, `a\b`, true}, {"*-é?", "x-éy", true},
	} {
		if got := Matches(c.pattern, c.value); got != c.want {
			t.Errorf("Matches(%q, %q) = %v", c.pattern, c.value, got)
		}
	}
}
