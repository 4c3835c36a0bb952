package table

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	const text = "a pod and a node\n  indented words continue here\naWordThatIsLongerThanTheWidth and more\n"
	for _, test := range []struct {
		width, hang int
		want        string
	}{
		{0, 2, text},
		{16, 2, "a pod and a node\n  indented words\n    continue\n    here\naWordThatIsLongerThanTheWidth\n  and more\n"},
		{16, 0, "a pod and a node\n  indented words\n  continue here\naWordThatIsLongerThanTheWidth\nand more\n"},
	} {
		if diff := cmp.Diff(test.want, Wrap(text, test.width, test.hang)); diff != "" {
			t.Errorf("width %d, hang %d, -want +got:\n%s", test.width, test.hang, diff)
		}
	}
}

// FuzzLines checks that lines fit unless a single word does not, and that no word is lost.
func FuzzWrap(f *testing.F) {
	f.Add("one two  three\n  four", 8, 2)
	f.Add("", 0, 0)
	f.Fuzz(func(t *testing.T, text string, width, hang int) {
		if width < 1 || width > 200 || hang < 0 || hang > 200 || !utf8.ValidString(text) {
			t.Skip()
		}
		got := Wrap(text, width, hang)
		if !slices.Equal(strings.Fields(text), strings.Fields(got)) {
			t.Errorf("%q became %q, with other words", text, got)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if n := utf8.RuneCountInString(strings.TrimRight(line, " ")); n > width && strings.Contains(strings.Trim(line, " "), " ") {
				t.Errorf("%d characters on %d: %q", n, width, line)
			}
		}
	})
}
