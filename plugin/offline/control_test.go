package offline

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
)

// TestNamesWithControlCharacters checks that no name of a file reaches a terminal as an escape sequence: not in a
// problem, whatever the kind, not in a note, and not in an answer.
func TestNamesWithControlCharacters(t *testing.T) {
	for name, text := range map[string]string{
		"pool":       `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: "x\e[31mRED\e[2J"}, spec: {}}`,
		"node":       `{apiVersion: v1, kind: Node, metadata: {name: "x\e[31mRED"}}`,
		"stored pod": `{apiVersion: v1, kind: Pod, metadata: {name: "x\u009b31mRED", resourceVersion: "1"}}`,
		"namespace":  `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: "x\e[31mRED"}}`,
		"kind":       `{apiVersion: v1, kind: "x\e[31mRED", metadata: {name: a}}`,
		"kind, ours": `{apiVersion: karpenter.sh/v1, kind: "x\e[31mRED", metadata: {name: a}}`,
		"group":      `{apiVersion: "x\e[31mRED/v1", kind: Pod, metadata: {name: a}}`,
	} {
		path := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(path, []byte("---\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := (&Source{Paths: []string{path}, Cluster: &Cluster{}}).Read(t.Context(), Policy{})
		if err != nil {
			t.Fatal(err)
		}
		lines := read.Notes()
		for _, problem := range read.Problems {
			lines = append(lines, problem.Error())
		}
		all := strings.Join(lines, "\n")
		if !strings.Contains(all, "RED") || !strings.Contains(all, `x\x1b[31m`) && !strings.Contains(all, `x\u009b31m`) {
			t.Errorf("%s: the name is not shown with escapes: %q", name, all)
		}
		if strings.ContainsFunc(all, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
			t.Errorf("%s: control characters in %q", name, all)
		}
		if len(read.nodes)+len(read.pods)+len(read.pools) > 0 {
			t.Errorf("%s: an object of such a name is read", name)
		}
	}
}

// TestNotText checks what is said about files that are not text.
func TestNotText(t *testing.T) {
	const manifest = "apiVersion: v1\nkind: Pod\n"
	var zipped, long, mark bytes.Buffer
	writer := gzip.NewWriter(&zipped)
	if _, err := writer.Write([]byte(manifest)); err != nil || writer.Close() != nil {
		t.Fatal(err)
	}
	mark.WriteString("\xff\xfe")
	for _, unit := range utf16.Encode([]rune(manifest)) {
		mark.Write([]byte{byte(unit), byte(unit >> 8)})
		long.Write([]byte{byte(unit >> 8), byte(unit)})
	}
	for name, c := range map[string]struct{ text, want string }{
		"gzip":                 {zipped.String(), "is compressed with gzip (gunzip -c FILE prints it), want YAML or JSON as UTF-8"},
		"UTF-16":               {mark.String(), "is text as UTF-16, want YAML or JSON as UTF-8"},
		"UTF-16, little":       {mark.String()[2:], "is text as UTF-16, want YAML or JSON as UTF-8"},
		"UTF-16, big, no mark": {long.String(), "is text as UTF-16, want YAML or JSON as UTF-8"},
		"binary":               {"\x7fELF\x02\x01\x01\x00\x00", "is not text (byte 0 at offset 7), want YAML or JSON as UTF-8"},
		"one zero":             {"\x00", "is not text (byte 0 at offset 0), want YAML or JSON as UTF-8"},
		"UTF-8 with a mark":    {"\ufeff" + manifest, ""},
		"empty":                {"", ""},
	} {
		_, err := ReadText(strings.NewReader(c.text), 0, LargestFile)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
