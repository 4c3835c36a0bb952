package migrate

import "testing"

// TestReadsAsText compares the fast check whether a text needs quotes with the parser.
func TestReadsAsText(t *testing.T) {
	for _, text := range []string{
		"", "a", "word", "false", "False", "FALSE", "falsey", "true", "null", "Null", "nullify", "~", "yes", "off", "y", "nan", ".nan", "inf",
		"infinity", "NaN", "team-a", "karpenter.sh/nodepool", "a:b", "a: b", "a #b", "#a", "5", "5a", "0x1F", "1e3",
		"e3", "2024-01-01", "12:30", "- a", "-a",
		"*a", "&a", "!a", "a.", "a-", "trailing ", "[a]", "{a}", "m5.large", "True/x", "null.null", "falseX", "truest",
	} {
		want := !ambiguous.MatchString(text) && parsesAsText(text)
		if got := readsAsText(text); got != want {
			t.Errorf("readsAsText(%q) is %t, want %t", text, got, want)
		}
		if again := (&document{text: "a: " + encode(scalar(text), false)}); again.parse() != nil || plain(at(again.root, "a")) != any(text) {
			t.Errorf("%q is not read back as it is written: %s", text, again.text)
		}
	}
}
